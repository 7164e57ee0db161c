"""Which rows are worth a place in the batch."""

from __future__ import annotations

import torch
from torch import Tensor

from ..credit.groups import unanimous
from ..types.context import StopReason
from ..types.shapes import expect
from ..types.table import Rows, best_of_each


def mixed_groups(reward: Tensor, group: Tensor) -> Rows:
    """Groups that disagree; a unanimous group teaches nothing. DAPO, arXiv 2503.14476."""
    expect("B", reward=reward, group=group)
    return ~unanimous(reward, group)


def best_of_group(reward: Tensor, group: Tensor) -> Rows:
    """The best row of each group, the first on ties. RAFT, arXiv 2304.06767."""
    expect("B", reward=reward, group=group)
    stays = torch.zeros(len(reward), dtype=torch.bool)
    stays[best_of_each(reward, group)] = True
    return stays


def finished(stop: Tensor) -> Rows:
    """Rows that ended by themselves: an answer cut by the token budget says little about its policy."""
    expect("B", stop=stop)
    return stop == StopReason.TERMINAL


def positive(reward: Tensor) -> Rows:
    """Rows with a reward above 0."""
    expect("B", reward=reward)
    return reward > 0
