"""Variants of the same work, interleaved round by round; medians, spread, and the ratio to the first variant of each group.

python -m benchmarks [ROUNDS]"""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import version

import torch

from burnish.models import packing
from burnish.models.load import load
from burnish.models.options import Learner
from burnish.models.tabular import Tabular
from burnish.training.request import resolve
from burnish.types import Context, mix

Work = Callable[[], object]


def interleaved(variants: dict[str, Work], rounds: int) -> dict[str, list[float]]:
    """Seconds of each variant in each round; one round before that is not counted."""
    found: dict[str, list[float]] = {name: [] for name in variants}
    for number in range(rounds + 1):
        for name, work in variants.items():
            began = time.perf_counter()
            work()
            if number:
                found[name].append(time.perf_counter() - began)
    return found


def show(title: str, found: dict[str, list[float]]) -> None:
    """A table on stdout."""
    print(f"\n{title}")
    first = statistics.median(next(iter(found.values())))
    for name, seconds in found.items():
        middle = statistics.median(seconds)
        low, high = min(seconds), max(seconds)
        print(f"  {name:<34} {1e3 * middle:9.2f} ms   ({1e3 * low:.2f} .. {1e3 * high:.2f})   {middle / first:5.2f} x")


def language_model() -> tuple[dict[str, Work], dict[str, Work]]:
    """Phases of a GRPO step on the embedded model, and what tree packing gives."""
    request = resolve("grpo", {"task": "mix"})
    policy = load("tiny", learner=Learner(lr=1e-12))
    made = request.method(policy, request.task, request.judge)
    contexts = request.task.contexts(0, 16)
    drawn = made.judge(made.collect(contexts))
    batch = made.assign(drawn)

    def alone() -> object:
        """Every row with its own prompt: no tree has two branches."""
        before, packing.TREE_LIMIT = packing.TREE_LIMIT, 0
        try:
            return made.gradient(batch)
        finally:
            packing.TREE_LIMIT = before

    phases: dict[str, Work] = {
        "whole step": made.step,
        "sample": lambda: made.collect(contexts),
        "feedback": lambda: request.judge.judge(drawn),
        "assign (reference forward)": lambda: made.assign(drawn),
        "gradient": lambda: made.gradient(batch),
    }
    return phases, {"tree packed": lambda: made.gradient(batch), "one row per answer": alone}


def small_updates() -> dict[str, Work]:
    """What the frame costs when the network costs nothing."""
    policy = Tabular(4, 8, 1, learner=Learner(optimizer="sgd", lr=1e-9))
    contexts = [Context(str(i), i) for i in range(4)]
    batch = policy.sample(contexts, 8, key=mix(0), max_steps=1).attach(advantage=torch.ones(32, 1, dtype=torch.float64))
    logits = torch.zeros(4, 8, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([logits], lr=1e-9)
    rows, steps = torch.arange(4).repeat_interleave(8), batch.steps[:, 0]

    def bare() -> None:
        optimizer.zero_grad()
        (-logits.log_softmax(-1)[rows, steps]).mean().backward()
        optimizer.step()

    def framed() -> object:
        return policy.update(batch, lambda scores, table: {"score": -table.advantage * scores.logp})

    return {"bare torch": bare, "burnish update": framed}


def main(rounds: int) -> None:
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads")
    print(
        ", ".join(f"{p} {version(p)}" for p in ("burnish", "torch", "transformers")), f"python {platform.python_version()}, {rounds} rounds"
    )
    phases, trees = language_model()
    show("A step of grpo on tiny, 16 prompts x 8", interleaved(phases, rounds))
    show("Its gradient", interleaved(trees, rounds))
    show("A bandit's update, 32 rows", interleaved(small_updates(), 20 * rounds))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
