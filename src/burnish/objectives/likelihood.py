"""Losses that imitate."""

from __future__ import annotations

from torch import Tensor

from ..types.shapes import expect
from ..types.table import Steps


def nll(logp: Tensor) -> Steps:
    """-log pi: cross-entropy on the steps of the mask. Uniform logits over V: log V per step."""
    expect("BT", logp=logp)
    return -logp


def match(divergence: Tensor) -> Steps:
    """The divergence to another model itself: all exact distillation."""
    expect("BT", divergence=divergence)
    return divergence
