"""Where along a row its credit goes, and on which scale."""

from __future__ import annotations

import torch
from torch import Tensor

from ..types.shapes import expect
from ..types.table import Steps


def whiten(advantage: Tensor, mask: Tensor, *, eps: float = 1e-8) -> Steps:
    """Mean 0 and population std 1 over all steps of the mask in the batch. Not conserving. Equal steps, and one alone, become 0."""
    expect("BT", advantage=advantage, mask=mask)
    x = advantage[mask]
    if not len(x) or x.min() == x.max():
        return torch.zeros_like(advantage)  # compared exactly: a rounded mean would turn equal advantages into noise of size 1
    return torch.where(mask, (advantage - x.mean()) / (x.std(correction=0) + eps), 0.0)


def share_by_divergence(
    advantage: Tensor, mask: Tensor, old_entropy: Tensor, old_divergence: Tensor, *, tau: float = 0.5, kappa: float = 1.0
) -> Steps:
    """A_t w_t, w = T softmax_t(d_t h_t^kappa / tau): steps where the policy departs and is unsure get more.

    Conserving where A is constant along the row: sum_t w_t = T. arXiv 2605.03327."""
    expect("BT", advantage=advantage, mask=mask, old_entropy=old_entropy, old_divergence=old_divergence)
    pull = torch.where(mask, old_divergence * old_entropy**kappa / tau, -torch.inf)
    share = torch.where(mask, pull.softmax(1), 0.0) * mask.sum(1, keepdim=True)
    return torch.where(mask, advantage * share, 0.0)
