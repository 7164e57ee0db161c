from typing import ClassVar

from ...parts import credit, measures, rewards, use
from .reinforce import REINFORCE


class RLOO(REINFORCE):
    """REINFORCE leave-one-out: the baseline is the mean of the other answers, and a whole answer is one action.

    The KL to the reference is part of the reward of every answer. arXiv 2402.14740."""

    paper: ClassVar[str] = "arXiv 2402.14740"
    reward = (use(rewards.minus_kl, beta=0.03),)
    credit = use(credit.leave_one_out)
    measure = (measures.ratio, measures.advantage_spread, measures.kl_to_reference)
