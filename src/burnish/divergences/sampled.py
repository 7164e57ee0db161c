"""Estimates from the sampled steps, d = log pi - log reference, unbiased for KL(pi || reference) in value when pi sampled them.

http://joschu.net/blog/kl-approx.html. |d| is bounded at 20, so one absurd step cannot make a loss or gradient infinite."""

from __future__ import annotations

import torch
from torch import Tensor

from ..types.shapes import expect
from ..types.table import Steps

BOUND = 20.0


def k1(logp: Tensor, reference_logp: Tensor) -> Steps:
    """d. May be negative. Its gradient as a loss has mean 0: use it in rewards."""
    expect("BT", logp=logp, reference_logp=reference_logp)
    return (logp - reference_logp).clamp(-BOUND, BOUND)


def k2(logp: Tensor, reference_logp: Tensor) -> Steps:
    """d^2 / 2 >= 0. On-policy, its gradient is that of KL."""
    return k1(logp, reference_logp) ** 2 / 2


def k3(logp: Tensor, reference_logp: Tensor) -> Steps:
    """exp(-d) - 1 + d >= 0. d = -5: 142.413; d = 5: 4.0067. arXiv 2402.03300, eq. 4."""
    d = k1(logp, reference_logp)
    return torch.expm1(-d) + d  # exp(-d) - 1 rounds to a negative k3 near 0


def exact(divergence: Tensor) -> Steps:
    """The divergence that the method measures over whole distributions, as a penalty."""
    expect("BT", divergence=divergence)
    return divergence


def negative_entropy(entropy: Tensor) -> Steps:
    """-H: KL to the uniform distribution less log V. With a positive weight it is the entropy bonus."""
    expect("BT", entropy=entropy)
    return -entropy
