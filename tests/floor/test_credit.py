"""Credit: hand numbers, the identities between estimators, and two packages."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from burnish.credit.groups import above_greedy, batch_centered, centered, group_mean, leave_one_out, normalized, ordinal, outcome, unanimous
from burnish.credit.time import gae, return_to_go
from burnish.keep.rows import mixed_groups
from burnish.rewards.shaping import at_end
from burnish.shape.steps import share_by_divergence, whiten
from burnish.types import StopReason

FEW = settings(deadline=None, derandomize=True, max_examples=30, database=None)
ESTIMATORS = [centered, normalized, leave_one_out, ordinal]
TERMINAL, LIMIT, CUT = StopReason.TERMINAL, StopReason.LIMIT, StopReason.CUT


def d64(x: Any) -> Tensor:
    return torch.tensor(x, dtype=torch.float64)


def one(n: int) -> Tensor:
    return torch.zeros(n, dtype=torch.int64)


groups = st.lists(st.tuples(st.integers(-20, 20), st.integers(0, 3)), min_size=2, max_size=12)


def table_of(rows: list[tuple[int, int]]) -> tuple[Tensor, Tensor]:
    return d64([r / 8 for r, _ in rows]), torch.tensor([g for _, g in rows])


# Groups


def test_group_mean_and_size_come_back_on_the_rows() -> None:
    mean, size = group_mean(d64([1, 2, 10, 3, 7]), torch.tensor([4, 9, -1, 4, -1]))
    assert mean.tolist() == [2, 2, 10, 2, 7]
    assert size.tolist() == [2, 1, 1, 2, 1]


def test_unanimous_compares_exactly() -> None:
    x, group = torch.tensor([0.1, 0.1, 0.1, 0.3, 0.3000001]), torch.tensor([1, 1, 1, 2, 2])
    assert unanimous(x, group).tolist() == [True, True, True, False, False]


def test_centered_by_hand() -> None:
    assert centered(d64([1, 0, 0, 1, 5, 7]), torch.tensor([1, 1, 1, 1, 2, 2])).tolist() == [0.5, -0.5, -0.5, 0.5, -1, 1]


def test_leave_one_out_is_the_gap_to_the_mean_of_the_others() -> None:
    reward = d64([3, 1, 2, 10, 4])
    group = torch.tensor([0, 0, 0, 1, 1])
    assert leave_one_out(reward, group).tolist() == pytest.approx([3 - 1.5, 1 - 2.5, 2 - 2, 6, -6])


def test_normalized_by_hand_with_either_deviation() -> None:
    reward = d64([0, 0, 3, 5])
    assert normalized(reward, one(4), eps=0.0).tolist() == pytest.approx([-2 / 4.5**0.5, -2 / 4.5**0.5, 1 / 4.5**0.5, 3 / 4.5**0.5])
    ratio = normalized(reward, one(4), eps=0.0)[0] / normalized(reward, one(4), eps=0.0, ddof=1)[0]
    assert float(ratio) == pytest.approx(math.sqrt(4 / 3))


def test_ordinal_by_hand_with_ties_sharing_their_rank() -> None:
    assert ordinal(d64([10, 0, 0, -3]), one(4)).tolist() == pytest.approx([1, 0, 0, -1])
    assert ordinal(d64([1, 1, 0]), one(3)).tolist() == pytest.approx([0.5, 0.5, -1])
    assert ordinal(d64([1, 2, 7, 9]), torch.tensor([5, 5, 6, 6])).tolist() == [-1, 1, -1, 1]


def test_batch_centered_and_outcome_and_above_greedy() -> None:
    assert batch_centered(d64([1, 2, 6])).tolist() == [-2, -1, 3]
    assert outcome(d64([1, 2])).tolist() == [1, 2]
    assert above_greedy(d64([1, 0]), d64([0.5, 0.5])).tolist() == [0.5, -0.5]


def test_a_deterministic_policy_earns_no_credit_above_its_greedy_answer() -> None:
    assert above_greedy(d64([0.3, 0.7]), d64([0.3, 0.7])).tolist() == [0, 0]


@pytest.mark.parametrize("part", ESTIMATORS)
@pytest.mark.parametrize("value", [0.35, 0.3, 0.7, 0.1, 1e-8, 123456.789])
def test_a_unanimous_group_gets_exactly_nothing(part: Callable[..., Tensor], value: float) -> None:
    for n in range(1, 9):
        assert part(torch.full((n,), value), one(n)).tolist() == [0.0] * n


def test_a_unanimous_group_gets_nothing_even_without_eps() -> None:
    assert normalized(torch.full((7,), 0.1), one(7), eps=0.0).tolist() == [0.0] * 7


@pytest.mark.parametrize(("many", "single"), [(0.35, 0.0), (0.3, 0.7), (0.7, 0.3)])
def test_one_odd_row_out_gets_a_small_finite_credit_in_single_precision(many: float, single: float) -> None:
    reward = torch.tensor([many] * 7 + [single])
    assert leave_one_out(reward, one(8))[7].item() == pytest.approx(single - many, abs=1e-6)
    for part in ESTIMATORS:
        credit = part(reward, one(8))
        assert credit.isfinite().all()
        assert credit.abs().max() < 10


@pytest.mark.parametrize("part", ESTIMATORS)
def test_rows_outside_every_group_get_nothing_and_change_nobody(part: Callable[..., Tensor]) -> None:
    reward, group = d64([1, 0, 0.5, 9, -9]), torch.tensor([3, 3, 3, -1, -1])
    credit = part(reward, group)
    assert credit[3:].tolist() == [0, 0]
    assert torch.equal(credit[:3], part(reward[:3], group[:3]))


@given(groups)
@FEW
def test_credits_sum_to_zero_over_every_group(rows: list[tuple[int, int]]) -> None:
    reward, group = table_of(rows)
    for part in ESTIMATORS:
        for g in group.unique():
            assert float(part(reward, group)[group == g].sum()) == pytest.approx(0, abs=1e-9)


@given(groups)
@FEW
def test_groups_do_not_see_each_other(rows: list[tuple[int, int]]) -> None:
    reward, group = table_of(rows)
    for part in ESTIMATORS:
        for g in group.unique():
            assert torch.allclose(part(reward, group)[group == g], part(reward[group == g], group[group == g]))


@given(groups)
@FEW
def test_only_the_order_of_the_rewards_counts_for_ordinal(rows: list[tuple[int, int]]) -> None:
    reward, group = table_of(rows)
    for rising in (torch.exp, lambda x: x**3, lambda x: 1000 * x - 7, torch.atan):
        assert torch.equal(ordinal(rising(reward), group), ordinal(reward, group))
    assert torch.equal(ordinal(-reward, group), -ordinal(reward, group))
    assert ordinal(reward, group).abs().max() <= 1


@given(groups, st.floats(0.1, 50), st.floats(-30, 30))
@FEW
def test_scale_and_offset_of_the_rewards(rows: list[tuple[int, int]], a: float, b: float) -> None:
    reward, group = table_of(rows)
    moved = a * reward + b
    if not torch.equal(unanimous(moved, group), unanimous(reward, group)):
        return  # rounding joined what was apart
    assert torch.allclose(centered(moved, group), a * centered(reward, group), atol=1e-9)
    assert torch.allclose(leave_one_out(moved, group), a * leave_one_out(reward, group), atol=1e-9)
    assert torch.allclose(normalized(moved, group, eps=0.0), normalized(reward, group, eps=0.0), atol=1e-9)


@given(groups)
@FEW
def test_centered_is_leave_one_out_times_all_but_one_over_all(rows: list[tuple[int, int]]) -> None:
    reward, group = table_of(rows)
    size = group_mean(reward, group)[1]
    assert torch.allclose(centered(reward, group), leave_one_out(reward, group) * (size - 1) / size)


def test_two_answers_are_credited_with_their_difference() -> None:
    assert leave_one_out(d64([3, 1]), one(2)).tolist() == [2, -2]
    assert ordinal(d64([3, 1]), one(2)).tolist() == [1, -1]


@pytest.mark.parametrize("right", range(1, 8))
def test_right_and_wrong_answers_by_solve_rate(right: int) -> None:
    """0/1 rewards with mean p: normalized sqrt((1-p)/p) and -sqrt(p/(1-p)); its size is sigma, that of centered sigma squared."""
    p, reward = right / 8, d64([1.0] * right + [0.0] * (8 - right))
    sigma = math.sqrt(p * (1 - p))
    grpo, dr, rloo = normalized(reward, one(8), eps=0.0), centered(reward, one(8)), leave_one_out(reward, one(8))
    assert float(grpo[0]) == pytest.approx(math.sqrt((1 - p) / p))
    assert float(grpo[-1]) == pytest.approx(-math.sqrt(p / (1 - p)))
    assert torch.allclose(grpo * sigma, dr)
    assert torch.allclose(rloo, dr * 8 / 7)
    scores = torch.linspace(-1, 1, 8, dtype=torch.float64) ** 3
    apart = scores[:right].mean() - scores[right:].mean()
    assert float((grpo * scores).mean()) == pytest.approx(float(sigma * apart))
    assert float((dr * scores).mean()) == pytest.approx(float(sigma**2 * apart))


@pytest.mark.parametrize(("G", "variance"), [(4, 2.2222222), (8, 1.7142857), (16, 1.5111111)])
def test_the_variance_of_ordinal_credit_on_the_scale_of_two(G: int, variance: float) -> None:
    """On the scale [-2, 2] of the paper: (4/3)(G+1)/(G-1), whatever the rewards."""
    assert float((2 * ordinal(torch.arange(G).double(), one(G))).var(correction=0)) == pytest.approx(variance)


def test_the_filter_of_mixed_groups_drops_only_what_has_no_credit() -> None:
    reward, group = torch.tensor([1.0, 1, 0, 1, 0.35, 0.35]), torch.tensor([1, 1, 2, 2, 3, 3])
    stays = mixed_groups(reward, group)
    assert stays.tolist() == [False, False, True, True, False, False]
    assert normalized(reward, group)[~stays].tolist() == [0, 0, 0, 0]


# Time


def test_return_to_go_by_hand_skips_steps_outside_the_mask() -> None:
    reward = d64([[1, 2, 4, 8]])
    assert return_to_go(reward, torch.tensor([[True, True, True, True]]), discount=0.5).tolist() == [[1 + 1 + 1 + 1, 2 + 2 + 2, 4 + 4, 8]]
    assert return_to_go(reward, torch.tensor([[True, False, True, False]]), discount=0.5).tolist() == [[1 + 2, 0, 4, 0]]


def test_an_outcome_at_the_end_is_the_return_of_every_step() -> None:
    mask = torch.arange(4) < torch.tensor([4, 2, 0])[:, None]
    reward = d64([3, -1, 5])
    made = return_to_go(at_end(reward, mask), mask)
    assert torch.equal(made, torch.where(mask, reward[:, None], 0.0))


def test_gae_by_hand() -> None:
    """r = 1, 2; V = 1, 3, 5; gamma = lam = 1/2: d_2 = 2 - 3 + 5/2 and d_1 = 1 - 1 + 3/2."""
    reward, value, mask = d64([[1, 2]] * 2), d64([[1, 3, 5]] * 2), torch.ones(2, 2, dtype=torch.bool)
    made = gae(reward, value, mask, torch.tensor([LIMIT, TERMINAL]), gamma=0.5, lam=0.5)
    assert made["advantage"].tolist() == [[1.5 + 0.25 * 1.5, 1.5], [1.5 - 0.25, -1]]
    assert made["returns"].tolist() == [[2.875, 4.5], [2.25, 2]]


def test_terminated_and_truncated_returns_and_nothing_crosses_the_boundary() -> None:
    """Reward 1 and V = 10 everywhere, an episode of three steps and one of two that goes on."""
    mask = torch.arange(3) < torch.tensor([3, 2])[:, None]
    reward, value = torch.where(mask, 1.0, 0.0), torch.full((2, 4), 10.0)
    for stop, right in ((TERMINAL, [3, 2, 1]), (LIMIT, [13, 12, 11]), (CUT, [13, 12, 11])):
        made = gae(reward, value, mask, torch.tensor([stop, CUT]), gamma=1.0, lam=1.0)["returns"]
        assert made[0].tolist() == right
        assert made[1].tolist() == [12, 11, 0]


def test_the_bootstrap_is_the_state_after_the_last_trained_step_not_after_a_count() -> None:
    mask = torch.tensor([[False, True, True, False]])
    value = d64([[100, 1, 2, 30, 400]])
    made = gae(d64([[9, 0, 0, 9]]), value, mask, torch.tensor([LIMIT]), gamma=1.0, lam=1.0)
    assert made["returns"].tolist() == [[0, 30, 30, 0]]
    assert made["advantage"].tolist() == [[0, 29, 28, 0]]


def random_rows() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    mask = torch.arange(5) < torch.tensor([5, 3, 1, 4])[:, None]
    reward = torch.where(mask, torch.randn(4, 5, generator=generator, dtype=torch.float64), 0.0)
    return reward, torch.randn(4, 6, generator=generator, dtype=torch.float64), mask, torch.tensor([TERMINAL, LIMIT, TERMINAL, CUT])


def test_lam_one_is_return_minus_value_and_lam_zero_is_the_one_step_error() -> None:
    reward, value, mask, stop = random_rows()
    ended = torch.zeros_like(stop)
    full = gae(reward, value, mask, ended, gamma=1.0, lam=1.0)
    to_go = return_to_go(reward, mask)
    assert torch.allclose(full["advantage"], torch.where(mask, to_go - value[:, :-1], 0.0))
    assert torch.allclose(full["returns"], to_go)
    none = gae(reward, torch.zeros_like(value), mask, ended, gamma=0.9, lam=1.0)
    assert torch.allclose(none["advantage"], return_to_go(reward, mask, discount=0.9))
    last = mask & ~torch.cat([mask[:, 1:], torch.zeros(4, 1, dtype=torch.bool)], 1)
    following = torch.where(last & (stop == TERMINAL)[:, None], 0.0, value[:, 1:])
    single = gae(reward, value, mask, stop, gamma=0.9, lam=0.0)
    assert torch.allclose(single["advantage"], torch.where(mask, reward + 0.9 * following - value[:, :-1], 0.0))


def test_gae_does_not_depend_on_padding() -> None:
    reward, value, mask, stop = random_rows()
    wide = gae(
        torch.cat([reward, torch.full((4, 2), 7.0)], 1),
        torch.cat([value, torch.full((4, 2), 7.0)], 1),
        torch.cat([mask, torch.zeros(4, 2, dtype=torch.bool)], 1),
        stop,
    )
    assert torch.equal(wide["advantage"][:, :5], gae(reward, value, mask, stop)["advantage"])
    assert wide["advantage"][:, 5:].eq(0).all()


def test_gae_of_a_perfect_critic_is_zero_on_a_sure_path() -> None:
    mask = torch.ones(1, 4, dtype=torch.bool)
    reward = d64([[1, -2, 0.5, 3]])
    value = torch.cat([return_to_go(reward, mask), d64([[0]])], 1)
    assert gae(reward, value, mask, torch.tensor([TERMINAL]), lam=0.7)["advantage"].abs().max() < 1e-12


# Packages


def rows_of(episodes: list[tuple[list[float], list[float], int]]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Episodes (rewards, values with the one after the last, stop) as one table."""
    T = max(len(r) for r, _, _ in episodes)
    reward = d64([r + [0.0] * (T - len(r)) for r, _, _ in episodes])
    value = d64([v + [0.0] * (T + 1 - len(v)) for _, v, _ in episodes])
    mask = torch.arange(T) < torch.tensor([len(r) for r, _, _ in episodes])[:, None]
    return reward, value, mask, torch.tensor([s for _, _, s in episodes])


def test_gae_equals_that_of_a_rollout_buffer_with_ends_and_a_time_limit(oracle: Callable[[str], dict[str, Any]]) -> None:
    data = oracle("gae_sb3")
    block = data["inputs"]["rollout"]
    steps, envs = len(block["rewards"]), len(block["last_values"])
    assert len(data["cases"]) == 8
    for case in data["cases"]:
        options, episodes, place = case["options"], [], []
        for env in range(envs):
            starts = [t for t in range(steps) if block["episode_starts"][t][env] or t == 0] + [steps]
            for begin, end in itertools.pairwise(starts):
                stop, after = TERMINAL, 0.0
                if end == steps and not block["last_dones"][env]:
                    stop, after = CUT, block["last_values"][env]
                if options["truncation_bootstrap"] and [end - 1, env] in block["truncated_at"]:
                    stop, after = LIMIT, block["terminal_values"][0]
                span = range(begin, end)
                episodes.append(([block["rewards"][t][env] for t in span], [block["values"][t][env] for t in span] + [after], int(stop)))
                place.append([(t, env) for t in span])
        made = gae(*rows_of(episodes), gamma=options["gamma"], lam=options["gae_lambda"])
        for name, right in (("advantage", "advantages"), ("returns", "returns")):
            for row, where in enumerate(place):
                seen = [case["outputs"][right][t][env] for t, env in where]
                assert made[name][row, : len(where)].tolist() == pytest.approx(seen, rel=1e-5, abs=1e-5)


def test_gae_equals_lambda_returns_and_truncated_advantages_of_a_return_library(oracle: Callable[[str], dict[str, Any]]) -> None:
    data = oracle("returns_rlax")
    block, gamma = data["inputs"]["sequence"], 0.97
    assert [d for d in block["discounts"] if d] == [gamma] * 6
    episodes, begin = [], 0
    for end in [t + 1 for t, done in enumerate(block["dones"]) if done] + [len(block["rewards"])]:
        stop = TERMINAL if block["dones"][end - 1] else CUT
        episodes.append((block["rewards"][begin:end], block["values"][begin : end + 1], int(stop)))
        begin = end
    reward, value, mask, stop = rows_of(episodes)
    assert len(data["cases"]) == 13
    for case in data["cases"]:
        made = gae(reward, value, mask, stop, gamma=gamma, lam=case["options"].get("lambda", 1.0))
        (kind, right), *_ = case["outputs"].items()
        seen = made["returns" if kind == "returns" else "advantage"][mask].tolist()
        assert seen == pytest.approx(right, rel=1e-9, abs=1e-10), case["name"]


# Shapes of credit


def test_whitened_steps_have_mean_zero_and_deviation_one_over_the_mask() -> None:
    mask = torch.arange(5) < torch.tensor([5, 2, 3])[:, None]
    advantage = torch.where(mask, torch.linspace(-3, 11, 15, dtype=torch.float64).reshape(3, 5), 1e9)
    made = whiten(advantage, mask)
    assert float(made[mask].mean()) == pytest.approx(0, abs=1e-12)
    assert float(made[mask].std(correction=0)) == pytest.approx(1, abs=1e-6)
    assert made[~mask].eq(0).all()
    assert whiten(d64([[1, 3]]), torch.ones(1, 2, dtype=torch.bool)).tolist()[0] == pytest.approx([-1, 1])


@pytest.mark.parametrize("value", [0.1, 0.35, 1e-8, 123.456])
@pytest.mark.parametrize("steps", [1, 3, 7, 97])
def test_whitening_equal_steps_gives_zero_and_no_noise(value: float, steps: int) -> None:
    mask = torch.ones(1, steps, dtype=torch.bool)
    assert whiten(torch.full((1, steps), value), mask).eq(0).all()


def redistributed(**options: float) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    mask = torch.arange(6) < torch.tensor([6, 3, 1, 0])[:, None]
    entropy, gap = (torch.rand(4, 6, generator=generator, dtype=torch.float64) for _ in range(2))
    return share_by_divergence(torch.ones(4, 6, dtype=torch.float64), mask, entropy, gap, **options), mask, gap * entropy


def test_sharing_conserves_the_rows_total_and_keeps_the_sign() -> None:
    weight, mask, pull = redistributed()
    assert weight.sum(1).tolist() == pytest.approx(mask.sum(1).tolist())
    assert (weight[mask] > 0).all()
    assert weight[~mask].eq(0).all()
    assert torch.equal(weight[0].argsort(), pull[0].argsort())


def test_sharing_by_hand() -> None:
    mask = torch.ones(1, 2, dtype=torch.bool)
    made = share_by_divergence(d64([[3, 3]]), mask, d64([[2, 1]]), d64([[math.log(3) / 4, 0]]), tau=0.5)
    assert made.tolist()[0] == pytest.approx([3 * 2 * 0.75, 3 * 2 * 0.25])


def test_sharing_is_even_when_nothing_diverges_or_tau_is_wide() -> None:
    assert redistributed(tau=1e9)[0][0].tolist() == pytest.approx([1.0] * 6)
    mask = torch.ones(1, 3, dtype=torch.bool)
    assert share_by_divergence(d64([[2, 2, 2]]), mask, d64([[1, 2, 3]]), torch.zeros(1, 3, dtype=torch.float64)).tolist() == [[2, 2, 2]]


def test_kappa_zero_shares_by_divergence_alone() -> None:
    mask, gap = torch.ones(1, 2, dtype=torch.bool), d64([[0.3, 0.6]])
    made = [share_by_divergence(d64([[1, 1]]), mask, entropy, gap, kappa=0.0) for entropy in (d64([[1, 5]]), d64([[4, 0.1]]))]
    assert torch.equal(*made)
