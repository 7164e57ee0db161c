"""Chance: every draw is a pure function of its key (splitmix64), so order, batch size and workers never matter.

Keys are int64 tensors, or one integer. Global random state is never read or written."""

from __future__ import annotations

import torch
from torch import Tensor

from .context import digest


def _signed(x: int) -> int:
    return x - (1 << 64) if x >> 63 else x


_STEP, _FIRST, _SECOND = map(_signed, (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def _shift(x: Tensor, n: int) -> Tensor:
    return (x >> n) & ((1 << (64 - n)) - 1)  # torch shifts int64 with the sign


def _scramble(x: Tensor) -> Tensor:
    x = (x ^ _shift(x, 30)) * _FIRST
    x = (x ^ _shift(x, 27)) * _SECOND
    return x ^ _shift(x, 31)


def mix(*parts: int | str | Tensor) -> Tensor:
    """One key (int64, broadcast over the parts) from many: mix(seed, step, "rollout", context_B, copy_B). Order matters."""
    key = torch.zeros((), dtype=torch.int64)
    for part in parts:
        key = _scramble((key + _STEP) ^ torch.as_tensor(digest(part) if isinstance(part, str) else part, dtype=torch.int64))
    return key


def uniform(key: Tensor, index: int | Tensor = 0) -> Tensor:
    """Numbers in [0, 1), float64, one per (key, index)."""
    return _shift(mix(key, index), 11).double() / (1 << 53)


def shuffled(key: Tensor, size: int) -> Tensor:
    """A permutation of range(size), (size,) int64."""
    return uniform(key, torch.arange(size)).argsort(stable=True)


def generator(key: Tensor) -> torch.Generator:
    """A private torch generator at this key, for what wants normal draws (initial weights)."""
    return torch.Generator().manual_seed(int(key) & ((1 << 63) - 1))


def normal(key: Tensor, index: int | Tensor = 0) -> Tensor:
    """Standard normal numbers, float64, one per (key, index): the inverse distribution function of `uniform`, so never infinite."""
    return torch.special.ndtri(uniform(key, index).clamp(2.0**-54, 1 - 2.0**-53))
