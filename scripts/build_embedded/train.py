"""The training loop: a phase is a fixed number of steps on a mixture with a schedule of the learning rate."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from scripts.build_embedded.examples import Mixture
from scripts.build_embedded.optimizer import Optimizer
from scripts.build_embedded.rows import Rows, pack
from torch.nn import functional
from transformers import LlamaForCausalLM

from burnish.tasks.base import generator

ROWS, COLUMNS = 32, 128
RATE = 5e-3
LOG_EVERY = 50


@dataclass
class Phase:
    """Steps on one mixture. `scale(progress)` is the share of the learning rate; own samples are drawn anew every `refresh` steps."""

    name: str
    steps: int
    mixture: Mixture
    scale: Callable[[float], float]
    refresh: int = 0
    trees_until: float | None = None  # the share of trees grows to this


class Log:
    """A JSON row per 50 steps."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.start = path, time.time()
        self.sums: dict[str, float] = defaultdict(float)
        self.counts: dict[str, int] = defaultdict(int)
        self.tokens = 0

    def note(self, losses: torch.Tensor, rows: Rows) -> None:
        """Add the losses of one step."""
        self.tokens += int((rows.mask.sum(-1) > 1).sum())
        for name, loss in zip(rows.names, losses.tolist(), strict=False):
            self.sums[name] += loss
            self.counts[name] += 1

    def write(self, phase: str, step: int, scale: float) -> None:
        """Write the means since the last row."""
        loss = {name: round(self.sums[name] / self.counts[name], 4) for name in sorted(self.sums)}
        seconds = round(time.time() - self.start, 1)
        row = {"phase": phase, "step": step, "rate": round(RATE * scale, 6), "tokens": self.tokens, "seconds": seconds}
        with self.path.open("a") as file:
            file.write(json.dumps({**row, "loss": loss}) + "\n")
        self.sums.clear()
        self.counts.clear()


def losses_of(model: LlamaForCausalLM, rows: Rows, body: Callable) -> torch.Tensor:
    """Cross-entropy per target, (N,)."""
    bias = torch.where(rows.mask, 0.0, -1e9)[:, None]
    hidden = body(input_ids=rows.tokens, attention_mask=bias, position_ids=rows.positions, use_cache=False).last_hidden_state
    logits = functional.linear(hidden.flatten(0, 1)[rows.places], model.lm_head.weight)
    return functional.cross_entropy(logits, rows.targets, reduction="none")


def run(model: LlamaForCausalLM, optimizer: Optimizer, phase: Phase, seed: int, log: Log, sample: Callable | None = None,
        compiled: Callable | None = None) -> None:  # fmt: skip
    """Train for the steps of this phase. Every batch is keyed by (seed, phase, step)."""
    model.train()
    first_share = phase.mixture.trees
    for step in range(phase.steps):
        progress = step / phase.steps
        if phase.trees_until is not None:
            phase.mixture.trees = first_share + (phase.trees_until - first_share) * progress
        if phase.refresh and sample and step % phase.refresh == 0:
            phase.mixture.samples = sample(model, phase.mixture, (seed, phase.name, step, "own"))
        rows = pack(generator(seed, phase.name, step), phase.mixture, ROWS, COLUMNS)
        losses = losses_of(model, rows, compiled or model.model)
        ((losses * rows.weights).sum() / rows.weights.sum()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step(phase.scale(progress))
        log.note(losses.detach(), rows)
        if (step + 1) % LOG_EVERY == 0 or step + 1 == phase.steps:
            log.write(phase.name, step + 1, phase.scale(progress))
