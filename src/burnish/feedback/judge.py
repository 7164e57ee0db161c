"""The contract of judges, and the task's own truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ..lazy import lazy

if TYPE_CHECKING:
    import torch

    from ..tasks.streams import TextStream
    from ..types import table
    from ..types.table import Feedback, Rollouts
else:
    torch, table = lazy("torch"), lazy("burnish.types.table")


class Judge(Protocol):
    """Says how each row went. `gives` names the columns and items it fills, `name` the account its queries are booked on."""

    name: str
    gives: frozenset[str]

    def judge(self, batch: Rollouts) -> Feedback:
        """Feedback on every row; NaN where the judge abstains."""


class Truth:
    """The task's own check, read at each context's root."""

    name = "truth"

    def __init__(self, task: TextStream):
        self.task, self.gives = task, task.gives - {"demonstration"}

    def judge(self, batch: Rollouts) -> Feedback:
        """`reward` (B,) in [0, 1], and `items` or `tests` (B,K) where the task has them."""
        rows = list(zip(batch.text, batch.contexts, strict=True))
        reward = torch.tensor([self.task.check(text, c.root) for text, c in rows], dtype=torch.float64)
        items: dict[str, torch.Tensor] = {}
        for kind in ("items", "tests"):
            if kind in self.gives:
                said = [self.task.details(kind, text, c.root) for text, c in rows]
                width = max(map(len, said), default=0)
                items[kind] = torch.tensor([[*map(float, s), *[torch.nan] * (width - len(s))] for s in said], dtype=torch.float64)
        return table.Feedback(columns={"reward": reward}, items=items, said_by={"reward": self.name} | dict.fromkeys(items, self.name))
