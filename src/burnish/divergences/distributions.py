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
    return _excess(p, q)


def forward_kl(p: Tensor, q: Tensor) -> Rows:
    """KL(q || p) = sum q (log q - log p): mass covering."""
    expect("NV", p=p, q=q)
    return _excess(q, p)


def jsd(p: Tensor, q: Tensor, *, b: float = 0.5) -> Rows:
    """b KL(q || m) + (1-b) KL(p || m), m = b q + (1-b) p. b = 1/2: at most log 2. arXiv 2306.13649."""
    expect("NV", p=p, q=q)
    floor = torch.finfo(p.dtype).min  # where both are impossible the mixture's gradient is 0, not NaN
    m = torch.logaddexp(q.clamp(min=floor) + math.log(b), p.clamp(min=floor) + math.log(1 - b))
    return b * _excess(q, m) + (1 - b) * _excess(p, m)


def hellinger(p: Tensor, q: Tensor) -> Rows:
    """1 - sum sqrt(p q), in [0, 1]: the squared Hellinger distance."""
    expect("NV", p=p, q=q)
    return 1 - ((p + q) / 2).exp().sum(1)


def total_variation(p: Tensor, q: Tensor) -> Rows:
    """sum |p - q| / 2, in [0, 1]."""
    expect("NV", p=p, q=q)
    return (p.exp() - q.exp()).abs().sum(1) / 2


def _excess(x: Tensor, y: Tensor) -> Tensor:
    """sum x (log x - log y): what is impossible under x adds 0, what only y finds impossible adds infinity."""
    gap = torch.where(x > -torch.inf, x - y, 0.0)
    return (x.exp() * gap).sum(1)
