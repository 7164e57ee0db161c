"""A small drawn table, and the numbers of established packages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from burnish.types import Context, Rollouts, StopReason, digest

DATA = Path(__file__).parent / "data"


def drawn(ids: list[str], length: list[int], T: int, **more: Any) -> Rollouts:
    """Rows with `length` steps in T places, numbered so that every step is told apart."""
    B, inside = len(ids), torch.arange(T) < torch.tensor(length)[:, None]
    numbers = torch.arange(B * T).reshape(B, T) + 1
    columns = {
        "steps": torch.where(inside, numbers, 0),
        "origin": torch.where(inside, 2, 0),
        "mask": inside,
        "turn": torch.zeros(B, T, dtype=torch.int64),
        "sampled_logp": torch.where(inside, -numbers / 10, 0.0),
        "temperature": torch.ones(B),
        "version": torch.zeros(B, dtype=torch.int64),
        "weight": torch.ones(B),
        "key": torch.arange(B) + 100,
        "group": torch.tensor([digest(i) for i in ids], dtype=torch.int64),
        "stop": torch.full((B,), int(StopReason.TERMINAL)),
    }
    return Rollouts([Context(i, f"prompt {i}") for i in ids], columns | more)


@pytest.fixture
def table() -> Rollouts:
    """Four rows of two contexts: 3, 2, 1 and 3 steps in 3 places."""
    return drawn(["a", "a", "b", "b"], [3, 2, 1, 3], 3)


@pytest.fixture(scope="session")
def draw() -> Callable[..., Rollouts]:
    return drawn


@pytest.fixture(scope="session")
def oracle() -> Callable[[str], dict[str, Any]]:
    """The numbers of a package, by the name of the file."""
    return lambda name: json.loads((DATA / f"{name}.json").read_text())


@pytest.fixture(scope="session")
def d64() -> Callable[[Any], Tensor]:
    return lambda x: torch.tensor(x, dtype=torch.float64)
