"""Changes of the reward, rows that stay, and what is reported."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor

from burnish.keep.rows import best_of_group, finished, mixed_groups, positive
from burnish.measures.samples import samples
from burnish.measures.update import advantage_spread, clip_share, ratio
from burnish.objectives.policy_gradient import clip
from burnish.rewards.shaping import at_end, minus_kl, minus_step_kl, overlong
from burnish.types import Rollouts, StopReason

NAN = float("nan")


def d64(x: Any) -> Tensor:
    return torch.tensor(x, dtype=torch.float64)


# Rewards


def test_the_reward_lies_on_the_last_trained_step() -> None:
    mask = torch.tensor([[True, True, False], [False, True, True], [True, False, False], [False, False, False]])
    assert at_end(d64([1, 2, 3, 4]), mask).tolist() == [[0, 1, 0], [0, 0, 2], [3, 0, 0], [0, 0, 0]]


def test_a_gap_in_the_mask_does_not_double_the_reward() -> None:
    assert at_end(d64([5]), torch.tensor([[True, False, True, False]])).tolist() == [[0, 0, 5, 0]]


def test_long_answers_lose_linearly_between_the_knots() -> None:
    length = torch.tensor([0, 6, 7, 8, 9, 10, 11, 1000])
    made = overlong(torch.ones(8, dtype=torch.float64), length, limit=10, buffer=4)
    assert made.tolist() == [1, 1, 0.75, 0.5, 0.25, 0, 0, 0]


def test_the_penalty_of_length_is_continuous_at_both_knots() -> None:
    for knot in (9000, 10000):
        steps = overlong(torch.zeros(3, dtype=torch.float64), torch.tensor([knot - 1, knot, knot + 1]), limit=10000, buffer=1000)
        assert steps.diff().abs().max() <= 1e-3 + 1e-12


def test_a_penalty_on_the_whole_answer_by_hand() -> None:
    mask = torch.tensor([[True, True, False]])
    made = minus_kl(d64([1]), d64([[-1, -2, 9]]), d64([[-1.5, -1, -9]]), mask, beta=0.1)
    assert made.tolist() == pytest.approx([1 - 0.1 * (0.5 - 1)])


def test_a_penalty_per_step_by_hand_sums_to_that_of_the_whole() -> None:
    mask = torch.tensor([[True, True, False], [True, False, False]])
    logp, reference = d64([[-1, -2, 9], [-3, 9, 9]]), d64([[-1.5, -1, 7], [-1, 7, 7]])
    reward = d64([1, 2])
    made = minus_step_kl(at_end(reward, mask), logp, reference, mask, d64([0.1, 0.1]))
    assert made[0].tolist() == pytest.approx([-0.05, 1.1, 0])
    assert made.sum(1).tolist() == pytest.approx(minus_kl(reward, logp, reference, mask, beta=0.1).tolist())
    weighted = minus_step_kl(at_end(reward, mask), logp, reference, mask, d64([0.0, 2.0]))
    assert weighted.tolist() == [[0, 1, 0], [2 + 4, 0, 0]]


def test_no_divergence_no_penalty() -> None:
    mask, logp = torch.ones(1, 2, dtype=torch.bool), d64([[-1, -2]])
    assert minus_kl(d64([3]), logp, logp, mask).tolist() == [3]
    assert minus_step_kl(d64([[0, 3]]), logp, logp, mask, d64([9])).tolist() == [[0, 3]]


# Keep


def test_groups_that_agree_leave() -> None:
    assert mixed_groups(d64([1, 1, 0, 1, 0]), torch.tensor([1, 1, 2, 2, -1])).tolist() == [False, False, True, True, False]


def test_the_best_row_of_each_group_stays() -> None:
    assert best_of_group(d64([0, 1, 1, 5, 5]), torch.tensor([1, 1, 1, 2, 2])).tolist() == [False, True, False, True, False]


def test_finished_and_positive_rows() -> None:
    assert finished(torch.tensor(list(StopReason))).tolist() == [True, False, False, False]
    assert positive(d64([1, 0, -1, 1e-9])).tolist() == [True, False, False, True]


# Measures of a table


def test_a_table_is_counted(table: Rollouts) -> None:
    judged = table.attach(
        reward=d64([1, 1, 0, NAN]),
        stop=torch.tensor([0, 1, 0, 3]),
        sampled_entropy=torch.arange(12.0).reshape(4, 3),
    )
    made = samples(judged)
    assert made["rows"] == 4
    assert made["sampled_steps"] == 9
    assert made["length_mean"] == pytest.approx(9 / 4)
    assert made["truncated_share"] == 0.25
    assert made["failed_rows"] == 1
    assert made["unjudged_rows"] == 1
    assert made["reward_mean"] == pytest.approx(2 / 3)
    assert made["reward_std"] == pytest.approx(math.sqrt(2) / 3)
    assert made["right_share"] == pytest.approx(2 / 3)
    assert made["entropy"] == pytest.approx((0 + 1 + 2 + 3 + 4 + 6 + 9 + 10 + 11) / 9)


def test_groups_that_agree_are_counted_among_the_judged(table: Rollouts) -> None:
    assert samples(table.attach(reward=d64([1, 1, 0, 1])))["unanimous_share"] == 0.5
    assert samples(table.attach(reward=d64([1, 0, 0, NAN])))["unanimous_share"] == 0.0  # a row alone agrees with nobody


def test_empty_and_silent_tables_are_counted_without_nan(table: Rollouts) -> None:
    assert samples(table.select(torch.zeros(4, dtype=torch.bool))) == {"rows": 0}
    silent = samples(table.attach(reward=torch.full((4,), NAN)))
    assert silent["unjudged_rows"] == 4
    assert "reward_mean" not in silent
    assert not any(math.isnan(x) for x in silent.values())


# Measures of an update


def test_ratios_by_hand() -> None:
    live, mask = d64([[math.log(2), 0.0], [math.log(0.5), 99]]), torch.tensor([[True, True], [True, False]])
    made = ratio(live, torch.zeros_like(live), mask)
    assert made["ratio_min"] == pytest.approx(0.5)
    assert made["ratio_max"] == pytest.approx(2)
    assert made["ratio_mean"] == pytest.approx(3.5 / 3)
    assert made["effective_share"] == pytest.approx(3.5**2 / (3 * 5.25))


def test_every_sample_counts_in_full_on_policy_and_one_of_many_when_one_rules() -> None:
    mask = torch.ones(1, 4, dtype=torch.bool)
    assert ratio(torch.zeros(1, 4), torch.zeros(1, 4), mask)["effective_share"] == 1
    assert ratio(torch.tensor([[50.0, 0, 0, 0]]), torch.zeros(1, 4), mask)["effective_share"] == pytest.approx(0.25)


def test_only_a_clip_that_binds_for_the_sign_of_its_advantage_is_counted() -> None:
    mask = torch.ones(1, 6, dtype=torch.bool)
    live = torch.tensor([[1.5, 1.5, 0.5, 0.5, 1.5, 1.1]]).log()
    advantage = torch.tensor([[1.0, -1, 1, -1, 0, 1]])
    assert clip_share(live, torch.zeros(1, 6), advantage, mask)["clip_share"] == pytest.approx(2 / 6)
    assert clip_share(live, torch.zeros(1, 6), advantage, mask, high=0.6)["clip_share"] == pytest.approx(1 / 6)
    assert clip_share(live, torch.zeros(1, 6), advantage, mask, low=0.6)["clip_share"] == pytest.approx(1 / 6)


def test_the_clip_share_is_the_share_of_trained_steps_without_a_gradient() -> None:
    generator = torch.Generator().manual_seed(4)
    mask = torch.arange(9) < torch.tensor([1, 9, 4])[:, None]
    old, live, advantage = (torch.randn(3, 9, generator=generator, dtype=torch.float64) for _ in range(3))
    live.requires_grad_()
    made = torch.autograd.grad(clip(live, old, advantage, mask)[mask].sum(), live)[0]
    share = clip_share(live.detach(), old, advantage, mask)["clip_share"]
    assert share == pytest.approx(float((made[mask] == 0).double().mean()))
    assert 0 < share < 1


def test_shares_weigh_steps_and_not_rows_or_micro_batches() -> None:
    """Rows of 1 and 9 steps: the single clipped one is a tenth, not a half."""
    mask = torch.arange(9) < torch.tensor([1, 9])[:, None]
    live = torch.zeros(2, 9)
    live[0] = 1.0
    zero, one = torch.zeros(2, 9), torch.ones(2, 9)
    assert clip_share(live, zero, one, mask)["clip_share"] == pytest.approx(0.1)
    assert ratio(live, zero, mask)["ratio_mean"] == pytest.approx((math.e + 9) / 10)
    assert advantage_spread(live, mask) == pytest.approx({"advantage_mean": 0.1, "advantage_std": 0.3})


def test_measures_are_plain_numbers_that_keep_no_graph() -> None:
    live, mask = torch.zeros(1, 2, requires_grad=True), torch.ones(1, 2, dtype=torch.bool)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = ratio(live, torch.zeros(1, 2), mask) | clip_share(live, torch.zeros(1, 2), torch.ones(1, 2), mask)
        made |= advantage_spread(live * 2, mask)
    assert all(type(x) is float for x in made.values())


def test_nothing_trained_nothing_measured() -> None:
    x, mask = torch.zeros(2, 3), torch.zeros(2, 3, dtype=torch.bool)
    assert ratio(x, x, mask) == clip_share(x, x, x, mask) == advantage_spread(x, mask) == {}


def test_an_absurd_ratio_is_reported_as_a_finite_number() -> None:
    made = ratio(torch.full((1, 1), 1e5), torch.zeros(1, 1), torch.ones(1, 1, dtype=torch.bool))
    assert all(math.isfinite(x) for x in made.values())
