"""Weights that steer themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import Memory

if TYPE_CHECKING:
    from ..types.table import Rollouts


class AdaptiveKL(Memory):
    """A KL weight w that holds the KL of whole answers near a target: w *= 1 + clip(KL/target - 1, -0.2, 0.2) rows/horizon.

    KL is the mean over rows of sum_t (sampled_logp - reference_logp). arXiv 1909.08593, section 2.2. target 0 keeps w as it is."""

    def __init__(self, initial: float, *, target: float, horizon: int = 10000):
        self.weight, self.target, self.horizon = initial, target, horizon

    def observe(self, batch: Rollouts) -> None:
        if not self.target or "reference_logp" not in batch or not len(batch):
            return
        kl = float((batch.sampled_logp - batch.reference_logp).double().where(batch.mask, 0.0 * batch.sampled_logp.double()).sum(1).mean())
        self.weight *= 1 + min(0.2, max(-0.2, kl / self.target - 1)) * len(batch) / self.horizon

    def value(self) -> float:
        return self.weight
