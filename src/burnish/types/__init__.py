"""The nouns: Context, Rollouts, Feedback, Scores, Term. What needs tensors is loaded at first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .context import Context, Origin, Rendered, StopReason, digest

if TYPE_CHECKING:
    from .chance import mix, normal, shuffled, uniform  # noqa: F401
    from .table import Feedback, Groups, Pairs, Rollouts, Rows, Scores, Steps, Term, blank  # noqa: F401

_HOME = dict.fromkeys(("mix", "normal", "shuffled", "uniform"), "chance")
_HOME |= dict.fromkeys(("Feedback", "Groups", "Pairs", "Rollouts", "Rows", "Scores", "Steps", "Term", "blank"), "table")

__all__ = ["Context", "Origin", "Rendered", "StopReason", "digest", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"burnish.types has no {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
