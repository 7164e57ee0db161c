"""The table: how good a model is on each task in each format, on held-out questions."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

from scripts.build_embedded.ask import ask
from scripts.build_embedded.drafts import draft, wrong
from scripts.build_embedded.examples import parts_and_target, reduced
from transformers import LlamaForCausalLM

from burnish.formats import FORMATS, Call
from burnish.tasks import truth
from burnish.tasks.base import Problem, generator, is_held_out
from burnish.tasks.registry import PARTS

ANSWERS = ("redo", "fix", "hinted", "turn")
SAID = ("critique", "first-error", "choose", "verdict", "score", "item", "items", "user", "reflect", "tools", "result", "tell")


def held_out(task: str, level: int, n: int, key: object = "table") -> list[Problem]:
    """n different held-out problems (fewer where the task has not so many)."""
    rng, problems = generator(key, task, level), {}
    for _ in range(400 * n):
        problem = PARTS[task].problem(rng, level)
        if is_held_out(problem.question):
            problems[problem.question] = problem
        if len(problems) == n:
            break
    return list(problems.values())


def cell(values: list[float]) -> dict[str, float]:
    """Mean, number of examples and standard error of a share."""
    mean = sum(values) / len(values) if values else float("nan")
    return {"value": round(mean, 3), "n": len(values), "se": round(math.sqrt(max(0.0, mean * (1 - mean)) / max(1, len(values))), 3)}


def answers(model: LlamaForCausalLM, task: str, level: int, n: int, sampled: bool) -> dict[str, float]:
    """Share of fully right answers."""
    problems = held_out(task, level, n)
    copies = 2 if sampled else 1
    problems = problems * copies
    said = ask(model, [FORMATS["answer"].render(problem.question) for problem in problems], sampled, ("answers", task, level))
    return cell([float(truth.right(text, problem.meta)) for text, problem in zip(said, problems, strict=False)])


def share_correct(name: str, text: str, target: str, parts: dict[str, Any], problem: Problem) -> float:
    """Is this output of a format right?"""
    meta = problem.meta
    if name in ANSWERS:
        return float(truth.right(text, meta))
    if name == "hint":
        place, letter = text[1:-1], text[-1:]
        inside = text[:1] == "@" and place.isdigit() and 0 < int(place) <= len(meta["answer"])
        return float(inside and meta["answer"][int(place) - 1] == letter)
    if name == "goal":
        return float(truth.score(text, meta) == parts["goal"])
    if name == "critiqued":
        return float(truth.critique(text, meta) == parts["critique"])
    if name == "direction":
        before, after = truth.score(parts["draft"], meta), truth.score(text, meta)
        return float(after > before if parts["direction"] == "+" else after < before)
    if name == "tools":  # the call must be right; answering at once counts if the answer is
        read = FORMATS[name].read(text)
        return float(text == target if isinstance(read, Call) or target.startswith("<call>") else truth.right(text, meta))
    return float(text == target)


def format_cell(model: LlamaForCausalLM, name: str, task: str, level: int, n: int) -> dict[str, float] | None:
    """Greedy accuracy of one format on one task; half of the drafts are right, for answers all are wrong."""
    rng, shown = generator("formats", name, task, level), []
    for problem in held_out(task, level, n, ("formats", name)):
        given = wrong(rng, problem.question, problem.meta) if name in ANSWERS else draft(rng, problem.question, problem.meta)
        answer = given if truth.right(given, problem.meta) else str(problem.meta["answer"])
        if name == "fix":
            made: Any = ({"draft": given, "critique": truth.critique(given, problem.meta)}, answer)
        elif name == "turn":
            made = ({"draft": given, "said": truth.user(given, problem.meta)}, answer)
        else:
            made = parts_and_target(rng, name, problem, given, answer)
        if made:
            shown.append((problem, *made[:2]))
    if len(shown) < n // 4:
        return None
    said = ask(model, [FORMATS[name].render(problem.question, parts) for problem, parts, _ in shown])
    return cell([share_correct(name, text, target, parts, problem) for text, (problem, parts, target) in zip(said, shown, strict=False)])


def with_tool(model: LlamaForCausalLM, level: int, n: int) -> dict[str, float]:
    """Share of right answers on `expr` when a true calculator answers the calls (at most three)."""
    problems = held_out("expr", level, n, "with tool")
    prompts = [FORMATS["tools"].render(problem.question) for problem in problems]
    final = [""] * len(problems)
    for _ in range(4):
        for i, text in enumerate(ask(model, prompts)):
            read = FORMATS["tools"].read(text)
            step = reduced(read.text + "+0") if isinstance(read, Call) else None
            final[i] = text
            prompts[i] += f"<call>{read.text}<end><result>{step[1]}<a>" if step and isinstance(read, Call) else ""
    return cell([float(truth.right(text, problem.meta)) for text, problem in zip(final, problems, strict=False)])


def table(model: LlamaForCausalLM, n: int, formats: bool) -> dict[str, Any]:
    """Everything that is measured about one model."""
    model.eval()
    found: dict[str, Any] = {"answer": defaultdict(dict), "formats": defaultdict(dict)}
    for task in PARTS:
        for level in (1, 2, 3):
            for kind in ("greedy", "sampled"):
                found["answer"][task][f"{level} {kind}"] = answers(model, task, level, n, kind == "sampled")
        for name in FORMATS if formats else ():
            if name != "answer" and (made := format_cell(model, name, task, 1, n)):
                found["formats"][task][name] = made
    if formats:
        found["with tool"] = {str(level): with_tool(model, level, n) for level in (1, 2, 3)}
    return found
