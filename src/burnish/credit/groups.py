"""Credit from the other samples of the same context. `group` (B,) joins rows; -1 stands outside every group and gets 0.

Rewards are finite here: rows that nobody judged have left the table."""

from __future__ import annotations

import torch
from torch import Tensor

from ..types.shapes import expect
from ..types.table import Rows


def group_index(group: Tensor) -> Tensor:
    """(B,) the number of each row's group; rows outside every group stand alone."""
    alone = torch.where(group < 0, -1 - torch.arange(len(group)), group)
    return alone.unique(return_inverse=True)[1]


def group_mean(x: Tensor, group: Tensor) -> tuple[Tensor, Tensor]:
    """Mean of x (B,) over each row's group and the group's size, both back on the rows (B,)."""
    index = group_index(group)
    total, count = (x.new_zeros(len(x)).index_add(0, index, y) for y in (x, torch.ones_like(x)))
    return (total / count.clamp(min=1))[index], count[index]


def unanimous(x: Tensor, group: Tensor) -> Tensor:
    """(B,) bool: all of the row's group have the same x. Compared exactly, not through a rounded spread."""
    index = group_index(group)
    low, high = (x.new_zeros(len(x)).scatter_reduce(0, index, x, how, include_self=False) for how in ("amin", "amax"))
    return (low == high)[index]


def centered(reward: Tensor, group: Tensor) -> Rows:
    """A = R - mean of the group; exactly 0 in a unanimous group.

    Dr. GRPO, arXiv 2503.20783. Equals (G-1)/G times leave_one_out."""
    expect("B", reward=reward, group=group)
    return torch.where(unanimous(reward, group), 0.0, reward - group_mean(reward, group)[0])


def normalized(reward: Tensor, group: Tensor, *, eps: float = 1e-6, ddof: int = 0) -> Rows:
    """A = (R - mean) / (std + eps) over the group; exactly 0 in a unanimous group.

    `ddof` 0 is the population's standard deviation, 1 the sample's (they differ by sqrt(G/(G-1))).
    GRPO, arXiv 2402.03300. For 0/1 rewards with mean p: sqrt((1-p)/p) for a right answer, -sqrt(p/(1-p)) for a wrong one."""
    gap = centered(reward, group)
    square, size = group_mean(gap**2, group)
    spread = (square * size / (size - ddof).clamp(min=1)).sqrt()
    return torch.where(unanimous(reward, group), 0.0, gap / (spread + eps))


def leave_one_out(reward: Tensor, group: Tensor) -> Rows:
    """A = R - mean of the group's other rows = (R - mean) G / (G - 1).

    RLOO, arXiv 2402.14740. Unbiased for every G >= 2; at G = 2 the two credits are R1 - R2 and its negative."""
    gap = centered(reward, group)
    size = group_mean(reward, group)[1]
    return gap * size / (size - 1).clamp(min=1)


def ordinal(reward: Tensor, group: Tensor) -> Rows:
    """A = (rows of the group below - rows above) / (G - 1), in [-1, 1]: only the order counts, ties share their rank.

    Invariant under every increasing map of the rewards; sums to 0 over a group."""
    expect("B", reward=reward, group=group)
    index = group_index(group)
    same = index[:, None] == index[None]
    gap = reward[:, None] - reward[None]
    above, below = (((sign * gap > 0) & same).sum(1) for sign in (1, -1))
    return (above - below).to(reward.dtype) / (same.sum(1) - 1).clamp(min=1)


def batch_centered(reward: Tensor) -> Rows:
    """A = R - mean of the whole batch. Contains the row itself, so the expected gradient is (B-1)/B of the true one."""
    expect("B", reward=reward)
    return reward - reward.mean()


def outcome(reward: Tensor) -> Rows:
    """A = R: the outcome itself, no baseline."""
    expect("B", reward=reward)
    return reward


def above_greedy(reward: Tensor, greedy_reward: Tensor) -> Rows:
    """A = R - R of the greedy answer to the same context. ReMax, arXiv 2310.10505. 0 for a deterministic policy."""
    expect("B", reward=reward, greedy_reward=greedy_reward)
    return reward - greedy_reward
