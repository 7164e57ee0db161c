"""--dry-run: what a request would build, run and spend."""

from __future__ import annotations

import inspect
from typing import Any

from ..memory.base import Memory
from ..methods.base import Method
from ..methods.fields import Role
from ..methods.plan import Plan
from ..training.request import Request
from .describe import IN_ORDER, parts_in, word_of
from .text import columns, heading, number, plain

STAGES = ("collect", "judge", "assign", "improve", "evolve", "deploy")


def dry_run(request: Request) -> dict[str, Any]:
    """The resolved plan as plain data."""
    trains = request.method.kind == "method"
    return {
        "method": request.name,
        "task": request.options.task,
        "model": request.options.model,
        "judge": request.judge.name if request.judge else None,
        "said": {k: str(v) for k, v in request.said.items()},
        "stages": {s: _owner(request.method, s) for s in (STAGES if trains else ("deploy",))},
        "parts": {s: [word_of(p) for p in parts_in(request.values.get(s))] for s in IN_ORDER if _used(request, s)},
        "forwards": _forwards(request) if trains else {},
        "models": {"policy": request.options.model} | {n: _model(request, n) for n in request.roles},
        "memories": {n: repr(v) for n, v in request.values.items() if isinstance(v, Memory)},
        "budget": _budget(request) if trains else _evaluations(request),
    }


def _owner(cls: type[Method], stage: str) -> str:
    """Whose code a stage is, and its first line of documentation."""
    owner = next(c for c in cls.__mro__ if stage in vars(c))
    return f"{owner.__name__}: {(inspect.getdoc(getattr(cls, stage)) or '').splitlines()[0]}"


def _used(request: Request, slot: str) -> bool:
    return bool(parts_in(request.values.get(slot))) and (slot != "critic_objective" or "critic" in request.roles)


def _model(request: Request, role: str) -> str:
    """What plays a role."""
    said = request.values[role]
    word = said.word if isinstance(said, Role) else type(said).__name__
    return {"frozen": "the policy as it is at the start", "copy": "a trainable copy of the policy"}.get(word, word)


def _forwards(request: Request) -> dict[str, str]:
    """Role -> what it is asked for, and how often per step."""
    plan: Plan = request.plan
    updates = request.values.get("epochs", 1) * request.values.get("minibatches", 1)
    often = f"{updates} update{'s' if updates > 1 else ''} per step, each forward and backward"
    found = {"policy": f"{_names(plan.want)}; {often}"}
    for role, outputs in plan.roles.items():
        who = "old (the policy that drew, before its updates)" if role == "old" else role
        found[who] = f"{_names(outputs)}; once per step, forward only"
    if plan.critic_want and "critic" in request.roles:
        found["critic"] = f"{found.get('critic', '')}; {_names(plan.critic_want)}; {often}".removeprefix("; ")
    return found


def _names(outputs: Any) -> str:
    return ", ".join(getattr(o, "name", str(o)) for o in outputs)


def _budget(request: Request) -> dict[str, int]:
    """At most this much; answers that end early take fewer tokens."""
    values, options = request.values, request.options
    rows = values.get("prompts", 1) * values.get("group_size", 1) * values.get("rounds", 1)
    draws = "demonstration" not in request.method.asks
    spent = {"steps": options.steps, "answers per step": rows}
    spent |= {"tokens per answer, at most": request.task.max_steps}
    if draws:
        spent["drawn tokens, at most"] = options.steps * rows * request.task.max_steps
        spent[f"questions to the judge ({request.judge.name if request.judge else 'none'})"] = options.steps * rows
    spent["updates"] = options.steps * values.get("epochs", 1) * values.get("minibatches", 1)
    return spent | _evaluations(request)


def _evaluations(request: Request) -> dict[str, int]:
    options = request.options
    between = (options.steps - 1) // options.eval_every if options.eval_every and request.method.kind == "method" else 0
    return {"evaluations": 2 + between, "held-out problems each, at most": options.eval_size}


def as_text(said: dict[str, Any]) -> str:
    """The plan for reading."""
    top = [[n, plain(said[n])] for n in ("method", "task", "model", "judge")]
    blocks = [columns(top)]
    for name in ("stages", "parts", "forwards", "models", "memories", "budget"):
        rows = [[k, plain(v) if isinstance(v, list | str) else number(v)] for k, v in said[name].items()]
        if rows:
            blocks.append(f"{heading(name)}\n{columns(rows, indent='  ')}")
    return "\n\n".join(blocks) + "\n\nnothing was built or run"
