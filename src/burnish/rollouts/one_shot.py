"""One context, one answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..lazy import lazy

if TYPE_CHECKING:
    import torch

    from ..models.base import Model
    from ..types.context import Context
    from ..types.table import Rollouts
else:
    torch = lazy("torch")


def one_shot(
    policy: Model, start: Sequence[Context] | Rollouts, n: int | torch.Tensor, *, key: torch.Tensor, max_steps: int, **support: Any
) -> Rollouts:
    """Draw n answers to each context (or continuations of each row)."""
    return policy.sample(start, n, key=key, max_steps=max_steps, **support)
