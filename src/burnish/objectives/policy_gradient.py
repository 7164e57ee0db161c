"""Losses whose gradient raises what did better than expected. Divided once, by the model: nothing here knows the batch."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from ..errors import TableError
from ..types.shapes import expect
from ..types.table import Steps


def score(logp: Tensor, advantage: Tensor) -> Steps:
    """-A_t log pi_t: the score function estimator. Williams 1992."""
    expect("BT", logp=logp, advantage=advantage)
    return -advantage * logp


def clip(
    logp: Tensor,
    behaviour_logp: Tensor,
    advantage: Tensor,
    mask: Tensor,
    *,
    low: float = 0.2,
    high: float = 0.2,
    dual: float = 0.0,
    ratio: Literal["token", "sequence"] = "token",
) -> Steps:
    """-min(r A, clip(r, 1-low, 1+high) A), r = pi / behaviour.

    `ratio` "token": one r per step (PPO, arXiv 1707.06347). "sequence": r is the geometric mean over the row's steps, in the form whose
    gradient still flows through each step (GSPO, arXiv 2507.18071); under sequence_mean it equals -min(s A, clip(s) A) per row.
    `dual` c > 1 bounds the loss at -c A where A < 0 (arXiv 1912.09729); 0 leaves it out.
    Equals -A where pi = behaviour, with the gradient of `score`; T = 1: both ratios agree."""
    expect("BT", logp=logp, behaviour_logp=behaviour_logp, advantage=advantage, mask=mask)
    r = log_ratio(logp, behaviour_logp, mask, ratio).exp()
    loss = -torch.minimum(r * advantage, r.clamp(1 - low, 1 + high) * advantage)
    return torch.where(advantage < 0, torch.minimum(loss, -dual * advantage), loss) if dual else loss


def cispo(logp: Tensor, behaviour_logp: Tensor, advantage: Tensor, mask: Tensor, *, low: float = 1.0, high: float = 2.0) -> Steps:
    """-sg[clip(r_t, 1-low, 1+high)] A_t log pi_t: the weight is clipped, the gradient never is.

    arXiv 2506.13585. low = 1 switches the lower bound off. Equals `score` where pi = behaviour."""
    expect("BT", logp=logp, behaviour_logp=behaviour_logp, advantage=advantage, mask=mask)
    weight = log_ratio(logp, behaviour_logp, mask, "token").exp().clamp(1 - low, 1 + high)
    return -weight.detach() * advantage * logp


def log_ratio(logp: Tensor, behaviour_logp: Tensor, mask: Tensor, ratio: str) -> Tensor:
    """log pi - log behaviour, bounded where exp would overflow; per step, or the row's mean spread over its steps."""
    gap = torch.where(mask, logp - behaviour_logp, 0.0).clamp(-60.0, 60.0)
    if ratio == "token":
        return gap
    if ratio != "sequence":
        raise TableError(f"there is no ratio {ratio!r}", expected="token, sequence")
    mean = gap.sum(1, keepdim=True) / mask.sum(1, keepdim=True).clamp(min=1)
    return torch.where(mask, mean.detach() + logp - logp.detach(), 0.0)
