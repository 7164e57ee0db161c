"""Losses of critics."""

from __future__ import annotations

import torch
from torch import Tensor

from ..types.shapes import expect
from ..types.table import Steps


def value_squared(value: Tensor, critic_value: Tensor, returns: Tensor, *, clip: float = 0.2) -> Steps:
    """max((V - R)^2, (V_old + clip(V - V_old, -clip, clip) - R)^2) / 2 at the state before each step; clip = 0: no clipping.

    `value` and `critic_value` (now and when the batch was judged) are (B,T+1), `returns` (B,T). PPO, arXiv 1707.06347."""
    expect("BT", value=value, critic_value=critic_value)
    now, before = value[:, :-1], critic_value[:, :-1]
    expect("BT", value=now, returns=returns)
    error = (now - returns) ** 2
    if clip:
        error = torch.maximum(error, (before + (now - before).clamp(-clip, clip) - returns) ** 2)
    return error / 2
