"""Credit along a row: returns and advantages over its trainable steps. Steps outside the mask are skipped, not counted."""

from __future__ import annotations

from typing import TypedDict

import torch
from torch import Tensor

from ..types.context import StopReason
from ..types.shapes import expect
from ..types.table import Steps


class AdvantageReturns(TypedDict):
    """Two columns at once."""

    advantage: Steps
    returns: Steps


def return_to_go(step_reward: Tensor, mask: Tensor, *, discount: float = 1.0) -> Steps:
    """A_t = r_t + discount A_{t+1} over the steps of mask (B,T).

    Sutton & Barto. Equals the row's reward everywhere when discount = 1 and the reward lies on the last step."""
    expect("BT", step_reward=step_reward, mask=mask)
    total, out = step_reward.new_zeros(len(mask)), []
    for t in reversed(range(mask.shape[1])):
        total = torch.where(mask[:, t], step_reward[:, t] + discount * total, total)
        out.append(total)
    return torch.where(mask, torch.stack(out[::-1], 1), 0.0) if out else step_reward


def gae(
    step_reward: Tensor, critic_value: Tensor, mask: Tensor, stop: Tensor, *, gamma: float = 1.0, lam: float = 0.95
) -> AdvantageReturns:
    """d_t = r_t + gamma V_{t+1} - V_t;  A_t = d_t + gamma lam A_{t+1};  returns = A + V.

    `critic_value` (B,T+1) is read at states. Only a TERMINAL stop sets the value after the last masked step to 0; LIMIT and CUT bootstrap.
    arXiv 1506.02438. lam = 1, gamma = 1: A = return - V. lam = 0: A = d. V = 0 and lam = 1: return_to_go."""
    expect("BT", critic_value=critic_value)
    expect("BT", step_reward=step_reward, mask=mask, critic_value_before_steps=critic_value[:, :-1])
    expect("B", rows=mask.any(1), stop=stop)
    if not mask.shape[1]:
        return {"advantage": step_reward, "returns": step_reward}
    end = (mask * torch.arange(1, mask.shape[1] + 1)).amax(1, keepdim=True)  # not mask.sum: a branch starts late
    following = torch.where(stop == StopReason.TERMINAL, 0.0, critic_value.gather(1, end)[:, 0])
    last, out = torch.zeros_like(following), []
    for t in reversed(range(mask.shape[1])):
        delta = step_reward[:, t] + gamma * following - critic_value[:, t]
        last = torch.where(mask[:, t], delta + gamma * lam * last, last)
        following = torch.where(mask[:, t], critic_value[:, t], following)
        out.append(last)
    advantage = torch.where(mask, torch.stack(out[::-1], 1), 0.0)
    return {"advantage": advantage, "returns": torch.where(mask, advantage + critic_value[:, :-1], 0.0)}
