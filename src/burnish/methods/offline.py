"""The base of what learns from rows that are written down."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ..types.context import Context
from .on_policy import OnPolicy

if TYPE_CHECKING:
    from ..types.table import Rollouts


class Offline(OnPolicy):
    """Rows come from what is written down: the task's demonstrations, encoded."""

    asks: ClassVar[tuple[str, ...]] = ("demonstration",)
    unused: ClassVar[tuple[str, ...]] = ("group_size", "temperature", "top_p", "top_k")
    prompts = 128
    group_size = 1
    measure = ()

    def collect(self, contexts: list[Context]) -> Rollouts:
        """The written answers, encoded."""
        answers = [c.meta["completion"] if "completion" in c.meta else c.meta["answer"] for c in contexts]
        return self.policy.encode(contexts, answers)

    def judge(self, batch: Rollouts) -> Rollouts:
        return batch
