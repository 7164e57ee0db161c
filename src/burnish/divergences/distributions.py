"""Exact divergences of next-step distributions p (the model that is scored) and q (the other): log-probabilities (N,V) -> (N,).

Used as `over(divergences.hellinger, to="reference")`. Each is 0 where p = q."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..types.shapes import expect
from ..types.table import Rows


def reverse_kl(p: Tensor, q: Tensor) -> Rows:
    """KL(p || q) = sum p (log p - log q): mode seeking."""
    expect("NV", p=p, q=q)
    return (p.exp() * (p - q)).sum(1)


def forward_kl(p: Tensor, q: Tensor) -> Rows:
    """KL(q || p) = sum q (log q - log p): mass covering."""
    expect("NV", p=p, q=q)
    return (q.exp() * (q - p)).sum(1)


def jsd(p: Tensor, q: Tensor, *, b: float = 0.5) -> Rows:
    """b KL(q || m) + (1-b) KL(p || m), m = b q + (1-b) p. b = 1/2: at most log 2. arXiv 2306.13649."""
    expect("NV", p=p, q=q)
    m = torch.logaddexp(q + math.log(b), p + math.log(1 - b))
    return b * (q.exp() * (q - m)).sum(1) + (1 - b) * (p.exp() * (p - m)).sum(1)


def hellinger(p: Tensor, q: Tensor) -> Rows:
    """1 - sum sqrt(p q), in [0, 1]: the squared Hellinger distance."""
    expect("NV", p=p, q=q)
    return 1 - ((p + q) / 2).exp().sum(1)


def total_variation(p: Tensor, q: Tensor) -> Rows:
    """sum |p - q| / 2, in [0, 1]."""
    expect("NV", p=p, q=q)
    return (p.exp() - q.exp()).abs().sum(1) / 2
