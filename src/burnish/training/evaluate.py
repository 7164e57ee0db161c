"""How good is a model on held-out contexts? The same draws for every model, so that before and after are paired."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..errors import FeedbackError, Refused
from ..feedback.judge import Judge
from ..types.chance import mix
from ..types.context import Context
from ..types.table import Rollouts


def evaluate(model: Any, task: Any, judge: Judge | None, *, size: int, greedy: bool = True) -> dict[str, Any]:
    """Mean reward (`sampled` at temperature 1, `greedy`), each held-out context once; standard error; means by kind of problem.

    Without a judge: the mean negative log-likelihood per token of the held-out demonstrations (`nll`)."""
    contexts = task.held_out(size)
    if judge is None:
        return _likelihood(model, contexts)
    key = mix("evaluation")
    drawn = _judged(model, task, judge, contexts, key, 1.0)
    reward = drawn.reward[drawn.said("reward")]
    out: dict[str, Any] = {"contexts": len(contexts), "sampled": float(reward.mean()), "right": float((reward >= 1).double().mean())}
    out["standard_error"] = float(reward.std(correction=1) / len(reward) ** 0.5) if len(reward) > 1 else 0.0
    out["by_task"] = _by_kind(drawn)
    if greedy:
        best = _judged(model, task, judge, contexts, key, 0.0)
        chosen = best.reward[best.said("reward")]
        out["greedy"] = float(chosen.mean())
        out["greedy_standard_error"] = float(chosen.std(correction=1) / len(chosen) ** 0.5) if len(chosen) > 1 else 0.0
    out["samples"] = [_shown(drawn, i) for i in range(min(64, len(drawn)))]
    return out


def _judged(model: Any, task: Any, judge: Judge, contexts: Sequence[Context], key: torch.Tensor, temperature: float) -> Rollouts:
    drawn = model.sample(contexts, 1, key=key, max_steps=task.max_steps, temperature=temperature)
    drawn = drawn.hear(judge.judge(drawn))
    if not drawn.said("reward").any():
        fix = "a judge that answers with a number where it can"
        raise FeedbackError(f"nobody said anything of {len(drawn)} held-out answers", where=f"judge {judge.name}", fix=fix)
    return drawn


def _by_kind(drawn: Rollouts) -> dict[str, float]:
    kinds = [str(c.root.meta.get("task", "")) for c in drawn.contexts]
    if len(set(kinds)) < 2:
        return {}
    said, reward = drawn.said("reward").tolist(), drawn.reward.tolist()
    rows = {k: [r for r, s, mine in zip(reward, said, kinds, strict=True) if s and mine == k] for k in sorted(set(kinds))}
    return {k: sum(r) / len(r) for k, r in rows.items() if r}


def _shown(drawn: Rollouts, row: int) -> dict[str, Any]:
    context, reward = drawn.contexts[row], float(drawn.reward[row])
    said = None if reward != reward else reward
    return {"prompt": str(context.prompt), "answer": drawn.text[row], "reward": said, "reference": str(context.root.meta.get("answer", ""))}


def _likelihood(model: Any, contexts: Sequence[Context]) -> dict[str, Any]:
    answers = [c.meta.get("completion", c.meta.get("answer")) for c in contexts]
    if any(a is None for a in answers):
        raise Refused("there is nothing to evaluate by: no judge and no reference answers", fix="--judge my_file.py:my_function")
    table = model.encode(contexts, answers)
    nll = -model.score(table).logp[table.mask].double()
    return {"contexts": len(contexts), "nll": float(nll.mean()), "standard_error": float(nll.std() / len(nll) ** 0.5)}


def headline(result: dict[str, Any]) -> tuple[str, float]:
    """The one number that before and after are compared by, and its name."""
    name = "sampled" if "sampled" in result else "nll"
    return name, float(result[name])
