"""How a model learns, as plain values: read and checked before torch is loaded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Learner:
    """The optimizer of one model.

    lr: step size after warm-up. optimizer: adamw or sgd. beta1, beta2, eps, weight_decay: as in torch. max_grad_norm: the whole gradient
    is scaled down to this norm when it is longer; 0 leaves it. warmup: updates over which lr rises linearly from lr/warmup. schedule:
    constant, or linear or cosine down to 0 at `decay_steps` updates. micro_batch: rows per forward when training, 0 means as many as
    `tokens` allow. The result of an update never depends on these last two."""

    lr: float = 1e-4
    optimizer: Literal["adamw", "sgd"] = "adamw"
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    warmup: int = 0
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    decay_steps: int = 0
    micro_batch: int = 0
    tokens: int = 16384

    def rate(self, update: int) -> float:
        """The step size of update number `update` (0 is the first)."""
        lr = self.lr * min(1.0, (update + 1) / self.warmup) if self.warmup else self.lr
        if self.schedule == "constant" or not self.decay_steps:
            return lr
        done = min(1.0, update / self.decay_steps)
        return lr * (1 - done if self.schedule == "linear" else (1 + math.cos(math.pi * done)) / 2)
