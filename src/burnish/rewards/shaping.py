"""Changes of the reward before credit is given."""

from __future__ import annotations

import torch
from torch import Tensor

from ..types.limits import Positive
from ..types.shapes import expect
from ..types.table import Rows, Steps


def at_end(reward: Tensor, mask: Tensor) -> Steps:
    """The reward (B,) of a row on its last trainable step, 0 elsewhere."""
    expect("BT", mask=mask)
    expect("B", rows=mask.any(1), reward=reward)
    last = mask & (mask.flip(1).cumsum(1).flip(1) == 1)
    return torch.where(last, reward[:, None], 0.0)


def overlong(reward: Tensor, length: Tensor, *, limit: Positive = 20480, buffer: Positive = 4096) -> Rows:
    """R + R_len: 0 up to limit - buffer steps, falling linearly to -1 at limit, -1 beyond.

    DAPO, arXiv 2503.14476, eq. 13; the defaults are the paper's, a short task wants its own. Continuous at both knots."""
    expect("B", reward=reward, length=length)
    over = (length - (limit - buffer)).to(reward.dtype) / buffer
    return reward - over.clamp(0.0, 1.0)


def minus_kl(reward: Tensor, sampled_logp: Tensor, reference_logp: Tensor, mask: Tensor, *, beta: float = 0.05) -> Rows:
    """R - beta sum_t (log pi - log reference): the whole answer is one action. RLOO, arXiv 2402.14740."""
    expect("BT", sampled_logp=sampled_logp, reference_logp=reference_logp, mask=mask)
    expect("B", rows=mask.any(1), reward=reward)
    return reward - beta * torch.where(mask, sampled_logp - reference_logp, 0.0).sum(1)


def minus_step_kl(step_reward: Tensor, sampled_logp: Tensor, reference_logp: Tensor, mask: Tensor, kl_weight: Tensor) -> Steps:
    """r_t - w (log pi_t - log reference_t), w = `kl_weight` (B,), the controller's present weight. arXiv 2009.01325."""
    expect("BT", step_reward=step_reward, sampled_logp=sampled_logp, reference_logp=reference_logp, mask=mask)
    expect("B", rows=mask.any(1), kl_weight=kl_weight)
    return step_reward - torch.where(mask, kl_weight[:, None] * (sampled_logp - reference_logp), 0.0)
