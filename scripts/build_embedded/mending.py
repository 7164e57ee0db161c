"""Does a critique help? Wrong answers that `tiny` samples on held-out questions, mended by the measured model (greedily)."""

from __future__ import annotations

from typing import Any

from scripts.build_embedded.ask import ask
from scripts.build_embedded.evaluate import cell, held_out
from transformers import LlamaForCausalLM

from burnish.formats import FORMATS
from burnish.tasks import truth
from burnish.tasks.base import Problem, generator

TASKS = ("add", "sub", "mul", "expr", "next", "sort", "reverse", "rules")


def mended(model: LlamaForCausalLM, name: str, wrong: list[tuple[Problem, str]], critiques: list[str]) -> dict[str, float]:
    """Share of right answers of a format on these wrong drafts."""
    pairs = zip(wrong, critiques, strict=True)
    prompts = [FORMATS[name].render(p.question, {"draft": text, "critique": said}) for (p, text), said in pairs]
    return cell([float(truth.right(text, p.meta)) for text, (p, _) in zip(ask(model, prompts), wrong, strict=True)])


def row(model: LlamaForCausalLM, actor: LlamaForCausalLM, task: str, level: int, n: int) -> dict[str, Any]:
    """Verdict on all samples; redo, and fix with the true, the model's own and another draft's critique, on the wrong ones."""
    problems = held_out(task, level, 4 * n, "mending")
    samples = ask(actor, [FORMATS["answer"].render(p.question) for p in problems], True, ("mending", task, level))
    drafts = [(p, text) for p, text in zip(problems, samples, strict=True) if text.isprintable() and text != "?"]
    said = ask(model, [FORMATS["verdict"].render(p.question, {"draft": text}) for p, text in drafts])
    verdicts = [float(("ny"[truth.right(text, p.meta)]) == letter) for (p, text), letter in zip(drafts, said, strict=True)]
    wrong = [(p, text) for p, text in drafts if not truth.right(text, p.meta)][:n]
    true = [truth.critique(text, p.meta) for p, text in wrong]
    own = ask(model, [FORMATS["critique"].render(p.question, {"draft": text}) for p, text in wrong])
    shuffled = generator("shuffled", task, level).sample(true, len(true))
    return {
        "verdict": cell(verdicts),
        "critique": cell([float(a == b) for a, b in zip(true, own, strict=True)]),
        "redo": mended(model, "redo", wrong, true),
        "fix, true critique": mended(model, "fix", wrong, true),
        "fix, own critique": mended(model, "fix", wrong, own),
        "fix, another's critique": mended(model, "fix", wrong, shuffled),
    }


def mending(model: LlamaForCausalLM, actor: LlamaForCausalLM, n: int) -> dict[str, Any]:
    """Rows by task and level."""
    model.eval()
    actor.eval()
    return {f"{task} {level}": row(model, actor, task, level, n) for task in TASKS for level in (1, 2)}
