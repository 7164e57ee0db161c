"""Measures of one update: bound like every part, live names are the outputs that the gradient was taken at. Raw, before any clipping."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from ..objectives.policy_gradient import log_ratio
from ..types.shapes import expect


def ratio(logp: Tensor, behaviour_logp: Tensor, mask: Tensor) -> dict[str, float]:
    """Least, mean and greatest pi / behaviour over the mask, and the effective share of samples (sum r)^2 / (n sum r^2), in (0, 1]."""
    expect("BT", logp=logp, behaviour_logp=behaviour_logp, mask=mask)
    r = (logp - behaviour_logp)[mask].detach().double().clamp(-60, 60).exp()
    if not len(r):
        return {}
    effective = float(r.sum() ** 2 / (len(r) * (r**2).sum()))
    return {"ratio_min": float(r.min()), "ratio_mean": float(r.mean()), "ratio_max": float(r.max()), "effective_share": effective}


def clip_share(
    logp: Tensor,
    behaviour_logp: Tensor,
    advantage: Tensor,
    mask: Tensor,
    *,
    low: float = 0.2,
    high: float = 0.2,
    ratio: Literal["token", "sequence"] = "token",
) -> dict[str, float]:
    """Share of trained steps whose clip binds for the sign of their advantage (ratio 1.5 with A < 0 is not clipped).

    `low`, `high` and `ratio` are those of the objective, where it has them."""
    expect("BT", logp=logp, behaviour_logp=behaviour_logp, advantage=advantage, mask=mask)
    r = log_ratio(logp.detach(), behaviour_logp, mask, ratio).exp()
    binds = torch.where(advantage > 0, r > 1 + high, (advantage < 0) & (r < 1 - low))[mask]
    return {"clip_share": float(binds.double().mean())} if len(binds) else {}


def kl_to_reference(sampled_logp: Tensor, reference_logp: Tensor, mask: Tensor) -> dict[str, float]:
    """Mean over rows of sum_t (log pi - log reference), as sampled: an estimate of the KL of whole answers, before any weight."""
    expect("BT", sampled_logp=sampled_logp, reference_logp=reference_logp, mask=mask)
    rows = torch.where(mask, sampled_logp - reference_logp, 0.0).double().sum(1)
    return {"kl": float(rows.mean())} if len(rows) else {}


def advantage_spread(advantage: Tensor, mask: Tensor) -> dict[str, float]:
    """Mean and population std of the advantage over the trained steps."""
    expect("BT", advantage=advantage, mask=mask)
    x = advantage[mask].detach().double()
    return {"advantage_mean": float(x.mean()), "advantage_std": float(x.std(correction=0))} if len(x) else {}
