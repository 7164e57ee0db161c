"""Several draws, one answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..feedback.judge import Judge
from ..models.base import Model
from ..types.context import Context
from ..types.table import Rollouts


class BestOf(Model):
    """Draws n answers to each context and keeps the one its judge likes best, the first on ties."""

    offers: ClassVar[frozenset[str]] = frozenset({"sample"})

    def __init__(self, policy: Model, judge: Judge, n: int):
        super().__init__(policy.learner)
        self.policy, self.judge, self.n = policy, judge, n

    @torch.no_grad()
    def sample(self, start: Sequence[Context] | Rollouts, n: int | Tensor = 1, **how: Any) -> Rollouts:
        """As every model; each row is the best of n candidates, so nobody knows its log-prob (NaN)."""
        copies = int(torch.as_tensor(n).max())
        pool = self.policy.sample(start, copies * self.n, **how)
        reward = self.judge.judge(pool).columns["reward"]
        slot = torch.arange(len(pool)) // self.n
        known = torch.where(reward.isnan(), -torch.inf, reward).reshape(-1, self.n)
        best = pool.select(slot.unique() * self.n + known.argmax(1))
        unknown = torch.where(best.mask, torch.nan, best.sampled_logp)
        return Rollouts(best.contexts, best.columns | {"sampled_logp": unknown, "kept": unknown})
