"""GRPO with another baseline: the group's median. burnish train my_method.py:MedianGRPO --task sort"""

import torch

from burnish.methods.policy_gradient.grpo import GRPO
from burnish.parts import use
from burnish.types.table import Rows


def above_median(reward: torch.Tensor, group: torch.Tensor) -> Rows:
    """A = R - median of the group: what most answers get earns nothing, only what is unlike it does."""
    advantage = torch.zeros_like(reward)
    for one in group[group >= 0].unique():
        rows = group == one
        advantage[rows] = reward[rows] - reward[rows].median()
    return advantage


class MedianGRPO(GRPO):
    """GRPO whose baseline is the median of the group, not its mean, and whose scale is 1."""

    credit = use(above_median)
