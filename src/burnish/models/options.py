"""How a model learns, as plain values: read and checked before torch is loaded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ..types.limits import Count, Positive, Share, Size


@dataclass(frozen=True)
class Learner:
    """The optimizer of one model. The result of an update never depends on micro_batch or tokens."""

    lr: Size = 1e-4  # step size after warm-up
    optimizer: Literal["adamw", "sgd"] = "adamw"  # as in torch
    beta1: Share = 0.9  # memory of the mean gradient
    beta2: Share = 0.999  # memory of its square
    eps: Size = 1e-8  # added to the root of the square
    weight_decay: float = 0.0  # decoupled, per update
    max_grad_norm: float = 1.0  # a longer gradient is scaled down to this norm; 0: never
    warmup: Count = 0  # updates over which lr rises linearly
    schedule: Literal["constant", "linear", "cosine"] = "constant"  # lr after warm-up
    decay_steps: Count = 0  # updates after which linear and cosine are at 0; 0: the run's own number
    micro_batch: Count = 0  # rows per forward in training; 0: as many as `tokens` allow
    tokens: Positive = 16384  # tokens per forward in training

    def rate(self, update: int) -> float:
        """The step size of update number `update` (0 is the first)."""
        lr = self.lr * min(1.0, (update + 1) / self.warmup) if self.warmup else self.lr
        if self.schedule == "constant" or not self.decay_steps:
            return lr
        done = min(1.0, update / self.decay_steps)
        return lr * (1 - done if self.schedule == "linear" else (1 + math.cos(math.pi * done)) / 2)
