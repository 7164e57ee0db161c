"""Objectives: closed forms, finite differences, exact gradients on a tree small enough to be enumerated."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from burnish.credit.groups import above_greedy, batch_centered, centered, leave_one_out, normalized, outcome
from burnish.credit.time import return_to_go
from burnish.objectives.likelihood import match, nll
from burnish.objectives.policy_gradient import cispo, clip, score
from burnish.objectives.value import value_squared
from burnish.rewards.shaping import minus_kl

INF = float("inf")


def d64(x: Any) -> Tensor:
    return torch.tensor(x, dtype=torch.float64)


def gradient(loss: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    x = x.detach().clone().requires_grad_()
    (made,) = torch.autograd.grad(loss(x), x)
    return made


def difference(f: Callable[[Tensor], Tensor], x: Tensor, step: float = 1e-6) -> Tensor:
    """Central finite differences."""
    out = torch.zeros_like(x)
    for i in range(x.numel()):
        move = torch.zeros(x.numel(), dtype=x.dtype)
        move[i] = step
        out.view(-1)[i] = (f(x + move.reshape(x.shape)) - f(x - move.reshape(x.shape))) / (2 * step)
    return out


def ragged() -> dict[str, Tensor]:
    """Three rows of 4, 2 and 1 steps, a policy that has moved away from its behaviour."""
    generator = torch.Generator().manual_seed(8)
    mask = torch.arange(4) < torch.tensor([4, 2, 1])[:, None]
    old = -torch.rand(3, 4, generator=generator, dtype=torch.float64) - 0.3
    live = old + 0.5 * torch.randn(3, 4, generator=generator, dtype=torch.float64)
    advantage = torch.randn(3, 4, generator=generator, dtype=torch.float64)
    return {"logp": live, "behaviour_logp": old, "advantage": advantage, "mask": mask}


ON_POLICY = {"logp": "behaviour_logp"}


# Hand numbers


def test_score_and_likelihood_by_hand() -> None:
    assert score(d64([[-1, -2]]), d64([[3, -4]])).tolist() == [[3, -8]]
    assert nll(d64([[-1, -2]])).tolist() == [[1, 2]]
    assert match(d64([[0.5]])).tolist() == [[0.5]]


def test_uniform_logits_cost_the_log_of_their_number_per_step() -> None:
    logp = torch.zeros(1, 4, 64, dtype=torch.float64).log_softmax(-1)[..., 0]
    assert float(nll(logp).sum()) == pytest.approx(4 * math.log(64))


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "flows"),
    [
        (1.5, 2, -1.2 * 2, False),  # good and already raised enough
        (1.5, -2, 1.5 * 2, True),  # bad and raised: pulled back in full
        (0.5, 2, -0.5 * 2, True),
        (0.5, -2, 0.8 * 2, False),
        (1.1, 2, -1.1 * 2, True),
        (5.0, -2, 3 * 2, False),  # beyond the dual bound
    ],
)
def test_clip_by_hand_and_where_its_gradient_stops(ratio: float, advantage: float, loss: float, flows: bool) -> None:
    old, mask = d64([[-1.0]]), torch.ones(1, 1, dtype=torch.bool)

    def part(x: Tensor) -> Tensor:
        return clip(x, old, d64([[advantage]]), mask, dual=3.0).sum()

    live = old + math.log(ratio)
    assert float(part(live)) == pytest.approx(loss)
    assert float(gradient(part, live)) == pytest.approx(-ratio * advantage if flows else 0)


def test_the_two_bounds_of_clip_are_apart() -> None:
    live, old, mask = d64([[math.log(1.25), math.log(0.75)]]), d64([[0, 0]]), torch.ones(1, 2, dtype=torch.bool)
    assert clip(live, old, d64([[1, -1]]), mask, low=0.2, high=0.28)[0].tolist() == pytest.approx([-1.25, 0.8])
    assert clip(live, old, d64([[1, -1]]), mask, low=0.3, high=0.2)[0].tolist() == pytest.approx([-1.2, 0.75])


def test_the_dual_bound_only_lowers_the_loss_of_bad_steps() -> None:
    rows = ragged()
    free, bound = clip(**rows), clip(**rows, dual=1.1)
    assert torch.equal(free[rows["advantage"] > 0], bound[rows["advantage"] > 0])
    assert (bound <= free).all()
    assert torch.equal(clip(**rows, dual=1e9), free)


def test_cispo_by_hand_keeps_the_gradient_of_clipped_steps() -> None:
    old, mask = d64([[-1, -1, -1]]), torch.ones(1, 3, dtype=torch.bool)
    live, advantage = old + d64([[math.log(5), math.log(2), math.log(0.1)]]), d64([[1, 1, -2]])
    made = gradient(lambda x: cispo(x, old, advantage, mask, low=0.5, high=2.0).sum(), live)
    assert made[0].tolist() == pytest.approx([-3, -2, 0.5 * 2])
    value = cispo(live, old, advantage, mask, low=0.5, high=2.0)
    assert torch.allclose(value, d64([[-3, -2, 1]]) * live)
    assert gradient(lambda x: clip(x, old, advantage, mask).sum(), live)[0, :2].tolist() == [0, 0]


def test_cispo_without_bounds_is_the_weighted_score_and_low_one_is_no_lower_bound() -> None:
    rows = ragged()
    weight = (rows["logp"] - rows["behaviour_logp"]).exp()
    assert torch.allclose(
        (cispo(**rows, high=1e9) - weight * score(rows["logp"], rows["advantage"]))[rows["mask"]], torch.zeros(7, dtype=torch.float64)
    )


def test_no_gradient_flows_through_the_weight_of_cispo() -> None:
    rows = ragged()
    others = {k: v for k, v in rows.items() if k != "logp"}
    weight = (rows["logp"] - rows["behaviour_logp"]).exp().clamp(0, 3)
    made = gradient(lambda x: cispo(x, **others)[rows["mask"]].sum(), rows["logp"])
    assert torch.allclose(made, torch.where(rows["mask"], -weight * rows["advantage"], 0.0))


def test_the_value_loss_by_hand_with_and_without_its_bound() -> None:
    value, before, returns = d64([[1.0, 9]]), d64([[0.0, 9]]), d64([[2.0]])
    assert value_squared(value, before, returns, clip=0.0).tolist() == [[0.5]]
    assert value_squared(value, before, returns, clip=0.2).tolist() == [[pytest.approx(1.8**2 / 2)]]
    assert value_squared(d64([[0.1, 9]]), before, returns, clip=0.2).tolist() == [[pytest.approx(1.9**2 / 2)]]


def test_the_value_loss_never_reads_the_state_after_the_last_step() -> None:
    made = gradient(lambda v: value_squared(v, torch.zeros(2, 4), torch.ones(2, 3)).sum(), torch.full((2, 4), 0.1))
    assert made[:, -1].tolist() == [0, 0]
    assert (made[:, :-1] != 0).all()


# Finite differences


@pytest.mark.parametrize("options", [{}, {"low": 0.1, "high": 0.6}, {"dual": 1.05}, {"low": 1.0, "high": INF}])
def test_the_gradient_of_clip_is_that_of_its_value(options: dict[str, float]) -> None:
    rows = ragged()
    others = {k: v for k, v in rows.items() if k != "logp"}

    def part(x: Tensor) -> Tensor:
        return clip(x, **others, **options)[rows["mask"]].sum()

    assert torch.allclose(gradient(part, rows["logp"]), difference(part, rows["logp"]), atol=1e-7)


@pytest.mark.parametrize("bound", [0.0, 0.2])
def test_the_gradient_of_the_value_loss_is_that_of_its_value(bound: float) -> None:
    value = torch.linspace(-1, 1, 10, dtype=torch.float64).reshape(2, 5)
    before, returns = value.flip(1), value[:, :-1] * 0.3 + 0.4

    def part(x: Tensor) -> Tensor:
        return value_squared(x, before, returns, clip=bound).sum()

    assert torch.allclose(gradient(part, value), difference(part, value), atol=1e-7)


# Ratio of a whole row


def row_loss(live: Tensor, rows: dict[str, Tensor], low: float, high: float) -> Tensor:
    """Mean over rows of -min(s A, clip(s) A), s the geometric mean of the row's ratios, written out."""
    mask = rows["mask"]
    s = (torch.where(mask, live - rows["behaviour_logp"], 0.0).sum(1) / mask.sum(1)).exp()
    A = rows["advantage"][:, 0]
    return -torch.minimum(s * A, s.clamp(1 - low, 1 + high) * A).mean()


@pytest.mark.parametrize(("low", "high"), [(0.2, 0.2), (3e-4, 4e-4), (0.9, INF)])
def test_the_ratio_of_a_sequence_has_value_and_gradient_of_the_row_form(low: float, high: float) -> None:
    rows = ragged()
    rows["advantage"] = rows["advantage"][:, :1].expand(3, 4).clone()
    others = {k: v for k, v in rows.items() if k != "logp"}
    mask = rows["mask"]

    def part(x: Tensor) -> Tensor:
        loss = clip(x, **others, low=low, high=high, ratio="sequence")
        return (torch.where(mask, loss, 0.0).sum(1) / mask.sum(1)).mean()

    def whole(x: Tensor) -> Tensor:
        return row_loss(x, rows, low, high)

    assert float(part(rows["logp"])) == pytest.approx(float(whole(rows["logp"])))
    assert torch.allclose(gradient(part, rows["logp"]), difference(whole, rows["logp"]), atol=1e-7)


def test_rows_of_one_step_have_one_ratio_by_token_and_by_sequence() -> None:
    rows = {k: v[:, :1] for k, v in ragged().items()}
    assert torch.allclose(clip(**rows), clip(**rows, ratio="sequence"))


# On policy, every clipped objective is the score function


@pytest.mark.parametrize("part", [clip, cispo, lambda *a: clip(*a, dual=3.0), lambda *a: clip(*a, ratio="sequence")])
def test_on_policy_the_gradient_is_that_of_score_and_clip_costs_minus_the_advantage(part: Callable[..., Tensor]) -> None:
    rows = ragged()
    old, advantage, mask = rows["behaviour_logp"], rows["advantage"], rows["mask"]
    made = gradient(lambda x: part(x, old, advantage, mask)[mask].sum(), old)
    assert torch.allclose(made, gradient(lambda x: score(x, advantage)[mask].sum(), old))
    if part is not cispo:
        assert torch.allclose(part(old, old, advantage, mask)[mask], -advantage[mask])


@pytest.mark.parametrize("part", [clip, cispo, lambda *a: clip(*a, ratio="sequence")])
def test_no_advantage_no_gradient(part: Callable[..., Tensor]) -> None:
    rows = ragged()
    zero = torch.zeros_like(rows["advantage"])
    made = part(rows["logp"], rows["behaviour_logp"], zero, rows["mask"])
    assert made.abs().max() == 0
    assert gradient(lambda x: part(x, rows["behaviour_logp"], zero, rows["mask"]).sum(), rows["logp"]).abs().max() == 0


def test_clip_without_bounds_is_the_plain_ratio() -> None:
    rows = ragged()
    plain = -(rows["logp"] - rows["behaviour_logp"]).exp() * rows["advantage"]
    assert torch.allclose(clip(**rows, low=1.0, high=INF)[rows["mask"]], plain[rows["mask"]])


# Poison and extremes


@pytest.mark.parametrize("poison", [float("nan"), -INF])
@pytest.mark.parametrize("part", [clip, cispo, lambda *a: clip(*a, ratio="sequence")])
def test_what_lies_outside_the_mask_enters_neither_loss_nor_gradient(part: Callable[..., Tensor], poison: float) -> None:
    rows = ragged()
    mask, seen = rows["mask"], []
    for filling in (0.0, poison):
        old = torch.where(mask, rows["behaviour_logp"], filling)
        live = torch.where(mask, rows["logp"], filling).requires_grad_()
        loss = part(live, old, torch.where(mask, rows["advantage"], 0.0), mask)[mask].sum()
        seen.append((loss.detach(), torch.autograd.grad(loss, live)[0]))
    (clean, clean_gradient), (dirty, dirty_gradient) = seen
    assert torch.equal(clean, dirty)
    assert torch.equal(clean_gradient, dirty_gradient)
    assert clean_gradient[~mask].eq(0).all()


@pytest.mark.parametrize("gap", [100.0, -100.0, 1e4])
@pytest.mark.parametrize("part", [clip, cispo])
def test_an_absurd_ratio_gives_a_finite_loss_and_gradient(part: Callable[..., Tensor], gap: float) -> None:
    old, mask = torch.zeros(1, 1), torch.ones(1, 1, dtype=torch.bool)
    for advantage in (1.0, -1.0):
        live = torch.full((1, 1), gap)
        assert part(live, old, torch.full((1, 1), advantage), mask).isfinite().all()
        assert gradient(lambda x, a=advantage: part(x, old, torch.full((1, 1), a), mask).sum(), live).isfinite().all()


def test_a_masked_row_does_not_dilute_the_mean_over_steps() -> None:
    """Rows of 4 and 8 steps, advantage and ratio 1, the second masked: the mean over steps is -1, as if the row were gone."""
    logp, advantage = torch.zeros(2, 8), torch.ones(2, 8)
    mask = torch.arange(8) < torch.tensor([4, 0])[:, None]
    both, alone = clip(logp, logp, advantage, mask), clip(logp[:1], logp[:1], advantage[:1], mask[:1])
    assert both[mask].mean() == alone[mask[:1]].mean() == -1


# The tree: three symbols, two steps, nine strings


STRINGS = torch.tensor(list(itertools.product(range(3), repeat=2)))
REWARD = d64([0.3, -1.0, 2.0, 0.0, 0.7, 1.1, -0.4, 0.9, 5.0])
THETA = torch.sin(torch.arange(12, dtype=torch.float64)).reshape(4, 3)


def tree_logp(theta: Tensor) -> Tensor:
    """(9,2) log-probs of every string: row 0 of theta is the first symbol's logits, row 1+s those after symbol s."""
    table = theta.log_softmax(-1)
    return torch.stack([table[0, STRINGS[:, 0]], table[1 + STRINGS[:, 0], STRINGS[:, 1]]], 1)


def expected_return(theta: Tensor) -> Tensor:
    return (tree_logp(theta).sum(1).exp() * REWARD).sum()


TRUE = difference(expected_return, THETA)


def expected_gradient(credit: Callable[[Tensor], Tensor], G: int) -> Tensor:
    """The exact mean over all tuples of G strings of the gradient of the mean over rows of -A sum log pi, with its sign turned."""
    theta = THETA.clone().requires_grad_()
    logp = tree_logp(theta)
    probability = logp.detach().sum(1).exp()
    total = torch.zeros((), dtype=torch.float64)
    for rows in itertools.product(range(9), repeat=G):
        index = torch.tensor(rows)
        advantage = credit(REWARD[index])[:, None].expand(G, 2)
        total = total + probability[index].prod() * score(logp[index], advantage).sum(1).mean()
    return -torch.autograd.grad(total, theta)[0]


def test_the_score_function_is_the_gradient_of_the_expected_return() -> None:
    assert torch.allclose(expected_gradient(outcome, 1), TRUE, atol=1e-8)


def test_a_constant_added_to_all_rewards_leaves_the_expected_gradient() -> None:
    assert torch.allclose(expected_gradient(lambda r: outcome(r + 100.0), 1), TRUE, atol=1e-7)


def test_credit_above_the_greedy_answer_is_unbiased() -> None:
    greedy = STRINGS.tolist().index([int(THETA[0].argmax()), int(THETA[1 + int(THETA[0].argmax())].argmax())])
    assert torch.allclose(expected_gradient(lambda r: above_greedy(r, REWARD[greedy].expand(1)), 1), TRUE, atol=1e-8)


def grouped(part: Callable[..., Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda r: part(r, torch.zeros(len(r), dtype=torch.int64))


@pytest.mark.parametrize("G", [2, 3])
def test_leave_one_out_is_unbiased_for_every_group_size(G: int) -> None:
    assert torch.allclose(expected_gradient(grouped(leave_one_out), G), TRUE, atol=1e-8)


@pytest.mark.parametrize("G", [2, 3])
def test_a_mean_that_holds_the_row_itself_shrinks_the_gradient_by_one_over_its_size(G: int) -> None:
    for part in (grouped(centered), batch_centered):
        assert torch.allclose(expected_gradient(part, G), (G - 1) / G * TRUE, atol=1e-8)


def test_return_to_go_credits_each_step_without_bias() -> None:
    """Rewards on both steps: the first step's reward is no credit of the second, and the mean gradient is unchanged."""
    theta = THETA.clone().requires_grad_()
    logp = tree_logp(theta)
    steps = torch.stack([STRINGS[:, 0] * 1.0, REWARD], 1)
    to_go = return_to_go(steps, torch.ones(9, 2, dtype=torch.bool))
    loss = (logp.detach().sum(1).exp()[:, None] * score(logp, to_go)).sum()

    def value(x: Tensor) -> Tensor:
        return (tree_logp(x).sum(1).exp() * steps.sum(1)).sum()

    assert torch.allclose(-torch.autograd.grad(loss, theta)[0], difference(value, THETA), atol=1e-8)


def test_a_penalty_in_the_reward_has_the_gradient_of_the_penalised_return() -> None:
    """E[(R - beta log pi/ref) grad log pi] is the gradient of E[R] - beta KL."""
    beta, theta = 0.3, THETA.clone().requires_grad_()
    reference = tree_logp(THETA.flip(0)).detach()
    logp = tree_logp(theta)
    reward = minus_kl(REWARD, logp.detach(), reference, torch.ones(9, 2, dtype=torch.bool), beta=beta)
    loss = (logp.detach().sum(1).exp()[:, None] * score(logp, reward[:, None].expand(9, 2))).sum()

    def value(x: Tensor) -> Tensor:
        live = tree_logp(x).sum(1)
        return (live.exp() * (REWARD - beta * (live - reference.sum(1)))).sum()

    assert torch.allclose(-torch.autograd.grad(loss, theta)[0], difference(value, THETA), atol=1e-8)


def test_right_and_wrong_strings_carry_the_same_information() -> None:
    """grad p = p E_right[grad log pi] = -(1-p) E_wrong[grad log pi]."""
    right = REWARD > 0.8
    probability = tree_logp(THETA).sum(1).exp()
    p = float(probability[right].sum())
    true = difference(lambda x: tree_logp(x).sum(1).exp()[right].sum(), THETA)
    for kind, sign in ((right, p), (~right, -(1 - p))):
        weight = (probability * kind / probability[kind].sum())[:, None].expand(9, 2)
        mean = -gradient(lambda x, w=weight: score(tree_logp(x), w).sum(), THETA)
        assert torch.allclose(sign * mean, true, atol=1e-8)


def test_the_gradient_of_a_group_is_its_deviation_times_the_gap_of_right_and_wrong() -> None:
    rows = torch.tensor([8, 5, 0, 1, 3, 3])
    reward = (REWARD[rows] > 1).double()
    sigma = math.sqrt(2 * 4) / 6
    single = torch.stack([gradient(lambda x, i=i: tree_logp(x)[i].sum(), THETA) for i in rows])
    apart = single[reward == 1].mean(0) - single[reward == 0].mean(0)
    for part, size in ((normalized, sigma), (centered, sigma**2), (leave_one_out, 6 / 5 * sigma**2)):
        options = {"eps": 0.0} if part is normalized else {}
        advantage = part(reward, torch.zeros(6, dtype=torch.int64), **options)[:, None].expand(6, 2)
        made = -gradient(lambda x, a=advantage: score(tree_logp(x)[rows], a).sum(1).mean(), THETA)
        assert torch.allclose(made, size * apart, atol=1e-12)
