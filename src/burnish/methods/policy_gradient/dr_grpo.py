from typing import ClassVar

from ...parts import credit, use
from .grpo import GRPO


class DrGRPO(GRPO):
    """GRPO without its two normalisers: neither the group's spread nor an answer's own length scales its gradient. arXiv 2503.20783."""

    paper: ClassVar[str] = "arXiv 2503.20783"
    credit = use(credit.centered)
    penalty = ()
    reduction = ("constant", 16.0)  # the divisor is a constant length, the same for every batch
