"""Divergences: hand numbers, a package's numbers, and what impossible symbols and absurd steps do."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from burnish.divergences.distributions import forward_kl, hellinger, jsd, reverse_kl, total_variation
from burnish.divergences.sampled import exact, k1, k2, k3, negative_entropy

FEW = settings(deadline=None, derandomize=True, max_examples=50, database=None)
EXACT = [reverse_kl, forward_kl, jsd, hellinger, total_variation, lambda p, q: jsd(p, q, b=0.1)]
SAMPLED = [k1, k2, k3]
INF = math.inf


def log(*rows: list[float]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64).log()


def step(d: float, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """logp and reference_logp of one step with log-ratio d."""
    return torch.full((1, 1), d, dtype=dtype), torch.zeros(1, 1, dtype=dtype)


def random_pair(seed: int = 2, rows: int = 6, symbols: int = 5) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    p, q = (2 * torch.randn(rows, symbols, generator=generator, dtype=torch.float64) for _ in range(2))
    return p.log_softmax(1), q.log_softmax(1)


def moved(part: Callable[[Tensor, Tensor], Tensor], p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients by the logits of both sides."""
    x, y = p.clone().requires_grad_(), q.clone().requires_grad_()
    a, b = torch.autograd.grad(part(x.log_softmax(1), y.log_softmax(1)).sum(), (x, y))
    return a, b


# Sampled steps


def test_estimators_by_hand() -> None:
    for d, right in ((-5.0, (-5, 12.5, 142.4131591)), (5.0, (5, 12.5, 4.0067379)), (0.0, (0, 0, 0))):
        assert [float(part(*step(d))) for part in SAMPLED] == pytest.approx(list(right))


def test_the_first_estimator_may_be_negative() -> None:
    assert float(k1(*step(-0.5))) == -0.5


@given(st.floats(-30, 30, width=32) | st.floats(-(2**-10), 2**-10, width=32) | st.floats(-(2**-23), 2**-23, width=32))
@settings(FEW, max_examples=300)
def test_the_other_two_are_never_negative_in_single_precision_either(d: float) -> None:
    for part in (k2, k3):
        assert float(part(*step(d, torch.float32))) >= 0


def test_k3_is_accurate_near_zero_in_single_precision() -> None:
    d = torch.tensor([[1e-4, -1e-4, 3e-3, -2e-2, 1e-6]])
    assert k3(d, torch.zeros(1, 5))[0].tolist() == pytest.approx(
        (d[0].double().neg().expm1() + d[0].double()).tolist(), rel=2e-2, abs=1e-12
    )


@pytest.mark.parametrize("d", [100.0, -100.0, 1e30])
@pytest.mark.parametrize("part", SAMPLED)
def test_an_absurd_step_has_a_bounded_value_and_a_finite_gradient(part: Callable[[Tensor, Tensor], Tensor], d: float) -> None:
    live, reference = step(d, torch.float32)
    live.requires_grad_()
    made = part(live, reference)
    assert made.abs() <= math.exp(20)
    assert torch.autograd.grad(made.sum(), live)[0].isfinite().all()


@pytest.mark.parametrize("part", [k1, k3])
def test_the_mean_over_the_policy_is_its_divergence(part: Callable[[Tensor, Tensor], Tensor]) -> None:
    p, q = random_pair()
    assert torch.allclose((p.exp() * part(p, q)).sum(1), reverse_kl(p, q))


def test_gradients_of_the_estimators_on_policy() -> None:
    """Mean over the policy: k1's is 0, k2's is that of KL(p || q), k3's is that of KL(q || p)."""
    p, q = random_pair()

    def mean_gradient(part: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        x = p.clone().requires_grad_()
        return torch.autograd.grad((p.exp() * part(x.log_softmax(1), q)).sum(), x)[0]

    assert mean_gradient(k1).abs().max() < 1e-12
    assert torch.allclose(mean_gradient(k2), moved(reverse_kl, p, q)[0])
    assert torch.allclose(mean_gradient(k3), moved(forward_kl, p, q)[0])


def test_penalties_that_are_handed_through() -> None:
    x = torch.tensor([[0.5, 0.0]])
    assert exact(x).tolist() == [[0.5, 0.0]]
    assert negative_entropy(x).tolist() == [[-0.5, -0.0]]


def test_negative_entropy_is_the_divergence_to_uniform_less_the_log_of_the_number() -> None:
    p, _ = random_pair()
    uniform = torch.full_like(p, 1 / 5).log()
    entropy = -(p.exp() * p).sum(1, keepdim=True)
    assert torch.allclose(negative_entropy(entropy)[:, 0], reverse_kl(p, uniform) - math.log(5))


# Whole distributions


def test_the_two_directions_by_hand() -> None:
    p, q = log([0.5, 0.5]), log([0.9, 0.1])
    assert float(reverse_kl(p, q)) == pytest.approx(0.5108256)
    assert float(forward_kl(p, q)) == pytest.approx(0.3680642)
    assert float(reverse_kl(q, p)) == float(forward_kl(p, q))


def test_the_others_by_hand() -> None:
    p, q = log([0.5, 0.5]), log([0.9, 0.1])
    assert float(total_variation(p, q)) == pytest.approx(0.4)
    assert float(hellinger(p, q)) == pytest.approx(1 - math.sqrt(0.45) - math.sqrt(0.05))
    m = [0.7, 0.3]
    js = sum(a * math.log(a / c) + b * math.log(b / c) for a, b, c in zip([0.5, 0.5], [0.9, 0.1], m, strict=True)) / 2
    assert float(jsd(p, q)) == pytest.approx(js)


def test_divergences_equal_those_of_a_package(oracle: Callable[[str], dict[str, Any]]) -> None:
    data = oracle("divergences")
    assert len(data["cases"]) == 6
    for case in data["cases"]:
        p, q = (log(data["inputs"][case["inputs"]][side]) for side in "pq")
        right = {name: float(x) for name, x in case["outputs"].items()}
        made = {
            "kl_pq": reverse_kl(p, q),
            "kl_qp": forward_kl(p, q),
            "js": jsd(p, q),
            "total_variation": total_variation(p, q),
        }
        for name, x in made.items():
            assert float(x) == pytest.approx(right[name], rel=1e-9, abs=1e-10), (case["name"], name)


@pytest.mark.parametrize("part", EXACT)
def test_equal_distributions_diverge_by_nothing_and_pull_nowhere(part: Callable[[Tensor, Tensor], Tensor]) -> None:
    p, _ = random_pair()
    assert part(p, p).abs().max() < 1e-12
    if part is not total_variation:  # it has a kink there
        assert moved(part, p, p)[0].abs().max() < 1e-12


@pytest.mark.parametrize("part", EXACT)
def test_the_gradient_is_that_of_the_value(part: Callable[[Tensor, Tensor], Tensor]) -> None:
    p, q = random_pair(rows=2)
    assert torch.autograd.gradcheck(lambda x, y: part(x.log_softmax(1), y.log_softmax(1)), (p.requires_grad_(), q.requires_grad_()))


@pytest.mark.parametrize("part", EXACT)
def test_a_symbol_that_both_find_impossible_changes_nothing(part: Callable[[Tensor, Tensor], Tensor]) -> None:
    p, q = random_pair()
    hole = torch.full((6, 1), -INF, dtype=torch.float64)
    assert torch.allclose(part(torch.cat([p, hole], 1), torch.cat([q, hole], 1)), part(p, q))
    x = p.clone().requires_grad_()
    y = torch.cat([x, hole], 1)
    made = torch.autograd.grad(part(y, torch.cat([q, hole], 1)).sum(), x)[0]
    assert torch.allclose(made, torch.autograd.grad(part(x, q).sum(), x)[0])


@pytest.mark.parametrize("part", EXACT)
def test_a_symbol_impossible_for_this_model_costs_no_nan_gradient(part: Callable[[Tensor, Tensor], Tensor]) -> None:
    logits = torch.tensor([[0.3, -0.2, 1.0]], dtype=torch.float64, requires_grad=True)
    p = torch.where(torch.tensor([True, True, False]), logits, -INF).log_softmax(1)
    q = log([0.2, 0.5, 0.3])
    made = part(p, q)
    assert not made.isnan().any()
    if made.isfinite().all():
        assert torch.autograd.grad(made.sum(), logits)[0].isfinite().all()


def test_bounds_are_reached_where_nothing_is_shared() -> None:
    p, q = log([1, 0, 0]), log([0, 0.5, 0.5])
    assert float(reverse_kl(p, q)) == float(forward_kl(p, q)) == INF
    assert float(jsd(p, q)) == pytest.approx(math.log(2))
    assert float(hellinger(p, q)) == float(total_variation(p, q)) == 1


@given(st.integers(0, 10**6))
@FEW
def test_symmetry_order_and_bounds(seed: int) -> None:
    p, q = random_pair(seed)
    for part in (jsd, hellinger, total_variation):
        assert torch.allclose(part(p, q), part(q, p), atol=1e-12)
    assert torch.allclose(jsd(p, q, b=0.2), jsd(q, p, b=0.8))
    tv, h, js, kl = total_variation(p, q), hellinger(p, q), jsd(p, q), reverse_kl(p, q)
    assert ((js >= 0) & (js <= math.log(2))).all()
    assert ((h <= tv + 1e-12) & (tv <= (2 * h).sqrt() + 1e-12)).all()
    assert (tv <= (kl / 2).sqrt() + 1e-12).all()  # Pinsker


def test_a_mixture_near_one_side_tends_to_the_divergence_from_it() -> None:
    """jsd / b tends to KL(q || p) as b falls to 0, and to KL(p || q) from the other end."""
    p, q = random_pair()
    assert torch.allclose(jsd(p, q, b=1e-6) / 1e-6, forward_kl(p, q), rtol=1e-3)
    assert torch.allclose(jsd(p, q, b=1 - 1e-6) / 1e-6, reverse_kl(p, q), rtol=1e-3)
