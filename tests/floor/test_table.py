"""The table: what its operations keep, fill, drop and refuse."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from burnish.errors import TableError
from burnish.types import Context, Feedback, Origin, Rollouts, Scores, StopReason, Term, blank, digest
from burnish.types.table import best_of_each

NAN = float("nan")
FEW = settings(deadline=None, derandomize=True, max_examples=25, database=None)
Draw = Callable[..., Rollouts]


def ids(batch: Rollouts) -> list[str]:
    return [c.id for c in batch.contexts]


def same(left: Rollouts, right: Rollouts) -> None:
    """Equal in every column, context and piece of feedback; NaN equals NaN."""
    assert ids(left) == ids(right)
    assert [c.id for c in left.sampled_under] == [c.id for c in right.sampled_under]
    assert set(left.columns) == set(right.columns)
    for name, x in left.columns.items():
        y = right.columns[name]
        equal = torch.allclose(x, y, 0, 0, equal_nan=True) if isinstance(x, Tensor) and x.is_floating_point() else bool((x == y).all())
        assert equal, name
    assert torch.equal(left.feedback.pairs, right.feedback.pairs)
    assert torch.equal(left.feedback.probability, right.feedback.probability)


# Reading


def test_columns_are_attributes_and_a_missing_one_is_named_with_those_there_are(table: Rollouts) -> None:
    assert table.temperature is table.columns["temperature"]
    with pytest.raises(AttributeError, match=r"no column 'reward'; it has group, key, mask"):
        _ = table.reward


def test_length_counts_every_step_that_is_no_padding_trained_or_not(table: Rollouts) -> None:
    assert table.only(torch.zeros(4, dtype=torch.bool)).length.tolist() == [3, 2, 1, 3]


def test_zero_is_a_score_and_nan_is_silence(table: Rollouts) -> None:
    assert table.attach(reward=torch.tensor([0.0, NAN, 1.0, NAN])).said("reward").tolist() == [True, False, True, False]


def test_in_knows_columns_and_pairs_only_when_there_are_some(table: Rollouts) -> None:
    assert "mask" in table
    assert "reward" not in table
    assert "pairs" not in table
    assert "pairs" in table.hear(Feedback(pairs=torch.tensor([[0, 1]])))


def test_a_table_survives_copy_and_pickle(table: Rollouts) -> None:
    same(copy.copy(table), table)
    same(pickle.loads(pickle.dumps(table)), table)


def test_scores_name_what_the_forward_was_not_asked_for() -> None:
    scores = Scores(logp=torch.zeros(1), value=torch.zeros(1))
    assert scores.logp is scores["logp"]
    with pytest.raises(AttributeError, match="'entropy'; it has logp, value"):
        _ = scores.entropy
    with pytest.raises(AttributeError, match="it has nothing"):
        _ = Scores().logp


def test_a_term_counts_the_mask_and_weighs_one_unless_it_says_so() -> None:
    term = Term(torch.zeros(2, 3))
    assert (term.on, term.reduce, term.weight) == ("mask", None, 1.0)


# attach


def test_attach_gives_a_new_table_and_leaves_the_old_one(table: Rollouts) -> None:
    more = table.attach(reward=torch.ones(4))
    assert "reward" in more
    assert "reward" not in table


@pytest.mark.parametrize("shape", [(4,), (4, 3), (4, 4), (4, 3, 7), (4, 4, 7)])
def test_rows_steps_and_states_are_columns(table: Rollouts, shape: tuple[int, ...]) -> None:
    assert table.attach(x=torch.zeros(shape)).x.shape == shape


@pytest.mark.parametrize("shape", [(4, 2), (4, 5), (4, 1, 3)])
def test_other_widths_are_sent_to_the_items(table: Rollouts, shape: tuple[int, ...]) -> None:
    with pytest.raises(TableError, match=r"(?s)x is no column.*\(B,\), \(B,3,...\) or \(B,4,...\).*feedback.items"):
        table.attach(x=torch.zeros(shape))


@pytest.mark.parametrize("value", [torch.zeros(3), torch.zeros(5, 3), ["text"], torch.tensor(1.0)])
def test_a_wrong_number_of_rows_is_refused(table: Rollouts, value: object) -> None:
    with pytest.raises(TableError, match=r"x has \d rows, the table has 4"):
        table.attach(x=value)


@pytest.mark.parametrize("name", ["steps", "origin", "sampled_logp", "kept", "key"])
def test_what_was_drawn_is_written_once(table: Rollouts, name: str) -> None:
    shape = (4,) if name == "key" else (4, 3)
    with pytest.raises(TableError, match=f"{name} is written once"):
        table.attach(**{name: torch.zeros(shape)})


def test_the_mask_narrows_and_never_widens(table: Rollouts) -> None:
    narrow = table.mask.clone()
    narrow[0, 0] = False
    less = table.attach(mask=narrow)
    assert torch.equal(less.mask, narrow)
    with pytest.raises(TableError, match="only narrows"):
        less.attach(mask=table.mask)
    with pytest.raises(TableError, match="only narrows"):
        table.attach(mask=torch.ones(4, 3, dtype=torch.bool))


def test_a_mask_is_bool_and_one_per_step(table: Rollouts) -> None:
    for wrong in (torch.zeros(4, dtype=torch.bool), torch.zeros(4, 4, dtype=torch.bool), torch.zeros(4, 3)):
        with pytest.raises(TableError, match="a mask is bool, one per step"):
            table.attach(mask=wrong)


def test_a_row_mask_is_not_spread_over_a_square_table(draw: Draw) -> None:
    with pytest.raises(TableError, match="one per step"):
        draw(["a", "b"], [2, 2], 2).attach(mask=torch.tensor([True, False]))


def test_only_narrows_by_rows_and_by_steps(table: Rollouts) -> None:
    assert table.only(torch.tensor([True, False, True, False])).mask.sum(1).tolist() == [3, 0, 1, 0]
    first = torch.tensor([True, False, False]).expand(4, 3)
    assert table.only(first).mask.sum(1).tolist() == [1, 1, 1, 1]


# select, concat, swap


def test_select_takes_rows_in_the_given_order_and_more_than_once(table: Rollouts) -> None:
    some = table.attach(text=["w", "x", "y", "z"]).select(torch.tensor([3, 0, 3]))
    assert some.text == ["z", "w", "z"]
    assert ids(some) == ["b", "a", "b"]
    assert some.key.tolist() == [103, 100, 103]


def test_select_by_bool_equals_select_by_number(table: Rollouts) -> None:
    same(table.select(torch.tensor([True, False, False, True])), table.select(torch.tensor([0, 3])))


def test_select_of_nothing_is_an_empty_table_of_the_same_columns(table: Rollouts) -> None:
    none = table.select(torch.zeros(4, dtype=torch.bool))
    assert len(none) == 0
    assert none.steps.shape == (0, 3)


def test_concat_pads_steps_with_zeros_and_states_by_one_more(draw: Draw) -> None:
    short = draw(["a"], [1], 1).attach(critic_value=torch.tensor([[1.0, 2.0]]))
    long = draw(["b"], [3], 3).attach(critic_value=torch.tensor([[3.0, 4.0, 5.0, 6.0]]))
    both = short.concat(long)
    assert both.steps.tolist() == [[1, 0, 0], [1, 2, 3]]
    assert both.origin.tolist() == [[2, 0, 0], [2, 2, 2]]
    assert both.mask.tolist() == [[True, False, False], [True, True, True]]
    assert both.critic_value.tolist() == [[1, 2, 0, 0], [3, 4, 5, 6]]


def test_concat_fills_holes_by_kind(table: Rollouts, draw: Draw) -> None:
    other = draw(["c"], [2], 2)
    mine = table.attach(
        reward=torch.arange(4.0),
        step_reward=torch.ones(4, 3),
        judged=torch.ones(4, dtype=torch.bool),
        segment=torch.zeros(4, 3, dtype=torch.int64),
        text=list("wxyz"),
    )
    both = mine.concat(other)
    assert both.reward[:4].tolist() == [0, 1, 2, 3]
    assert both.reward[4].isnan()
    assert both.step_reward[4].isnan().all()
    assert both.judged.tolist() == [True] * 4 + [False]
    assert both.segment[4].tolist() == [-1, -1, -1]
    assert both.text == [*"wxyz", None]
    back = other.concat(mine)
    assert back.reward[0].isnan()
    assert back.judged.tolist() == [False] + [True] * 4
    assert back.text == [None, *"wxyz"]


def test_a_missing_weight_is_one_and_a_missing_origin_is_padding(table: Rollouts) -> None:
    bare = Rollouts([Context("c", "")], {"steps": torch.zeros(1, 2, dtype=torch.int64), "mask": torch.zeros(1, 2, dtype=torch.bool)})
    both = table.concat(bare)
    assert both.weight.tolist() == [1.0] * 5
    assert both.origin[4].tolist() == [int(Origin.PADDING)] * 3


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.lists(st.integers(1, 4), min_size=1, max_size=4))
@FEW
def test_concat_then_select_gives_each_side_back(draw: Draw, mine: list[int], other: list[int]) -> None:
    left, right = draw([f"l{n}" for n in mine], mine, 4), draw([f"r{n}" for n in other], other, 4)
    both = left.concat(right)
    same(both.select(torch.arange(len(left))), left)
    same(both.select(len(left) + torch.arange(len(right))), right)


@given(st.permutations(range(4)))
@FEW
def test_select_by_an_order_and_back_changes_nothing(draw: Draw, order: list[int]) -> None:
    table = draw(["a", "a", "b", "b"], [3, 2, 1, 3], 3).hear(
        Feedback(pairs=torch.tensor([[0, 1], [3, 2]]), probability=torch.tensor([0.9, 0.6]))
    )
    way = torch.tensor(order)
    same(table.select(way).select(way.argsort()), table)


@given(st.lists(st.integers(1, 3), min_size=3, max_size=3))
@FEW
def test_concat_is_associative(draw: Draw, T: list[int]) -> None:
    a, b, c = (draw([f"{n}"], [t], t) for n, t in enumerate(T))
    same(a.concat(b).concat(c), a.concat(b.concat(c)))


def test_swap_puts_others_in_the_place_of_rows(table: Rollouts, draw: Draw) -> None:
    others = draw(["x", "y"], [4, 1], 4)
    swapped = table.swap(torch.tensor([2, 0]), others)
    assert ids(swapped) == ["y", "a", "x", "b"]
    assert swapped.length.tolist() == [1, 2, 4, 3]
    same(swapped.select(torch.tensor([2, 0])), others)


def test_swap_refuses_another_number_of_rows(table: Rollouts, draw: Draw) -> None:
    with pytest.raises(TableError, match="1 rows cannot stand in the place of 2"):
        table.swap(torch.tensor([0, 1]), draw(["x"], [1], 1))


def test_pairs_of_a_swapped_row_go_and_the_others_follow(table: Rollouts, draw: Draw) -> None:
    paired = table.hear(Feedback(pairs=torch.tensor([[0, 1], [2, 3]])))
    assert paired.swap(torch.tensor([1]), draw(["x"], [2], 2)).pairs.tolist() == [[2, 3]]


# prefix and under


def test_a_prefix_keeps_what_was_drawn_and_nothing_that_was_said_of_the_whole(table: Rollouts) -> None:
    judged = table.attach(reward=torch.ones(4), text=list("wxyz")).hear(Feedback(pairs=torch.tensor([[0, 1]])))
    cut = judged.prefix(torch.tensor([2, 2, 0, 3]))
    assert cut.length.tolist() == [2, 2, 0, 3]
    assert cut.steps.tolist() == [[1, 2, 0], [4, 5, 0], [0, 0, 0], [10, 11, 12]]
    assert torch.equal(cut.mask, cut.origin == Origin.POLICY)
    assert cut.stop.tolist() == [StopReason.CUT, StopReason.TERMINAL, StopReason.CUT, StopReason.TERMINAL]
    assert "reward" not in cut
    assert "text" not in cut
    assert "pairs" not in cut
    assert torch.equal(cut.sampled_logp[cut.mask], table.sampled_logp[cut.mask])


def test_a_prefix_longer_than_the_row_is_the_row(table: Rollouts) -> None:
    same(table.prefix(torch.full((4,), 9)), table)


def test_a_prefix_does_not_train_what_was_masked(table: Rollouts) -> None:
    assert not table.only(torch.zeros(4, dtype=torch.bool)).prefix(torch.full((4,), 2)).mask.any()


def test_under_other_contexts_drops_what_was_scored_and_keeps_what_was_drawn(table: Rollouts) -> None:
    scored = table.attach(scored=True, reference_logp=torch.zeros(4, 3)).attach(reward=torch.ones(4))
    hinted = [c.about("hint", c.prompt + "!") for c in table.contexts]
    moved = scored.under(hinted)
    assert "reference_logp" not in moved
    assert "reward" in moved
    assert ids(moved) == [c.id for c in hinted]
    assert [c.id for c in moved.sampled_under] == ids(table)
    assert torch.equal(moved.sampled_logp, table.sampled_logp)
    again = moved.attach(scored=True, reference_logp=torch.ones(4, 3))
    assert "reference_logp" in again
    assert "reference_logp" not in again.under(table.contexts)


def test_what_was_scored_on_either_side_of_a_concat_is_dropped_by_under(table: Rollouts, draw: Draw) -> None:
    both = table.concat(draw(["c"], [2], 3).attach(scored=True, old_logp=torch.zeros(1, 3)))
    assert "old_logp" not in both.under(both.contexts)


def test_under_refuses_another_number_of_contexts(table: Rollouts) -> None:
    with pytest.raises(TableError, match="1 contexts for 4 rows"):
        table.under(table.contexts[:1])


# Feedback


def test_hear_puts_columns_on_the_table_and_the_rest_beside_it(table: Rollouts) -> None:
    heard = table.hear(
        Feedback(
            columns={"reward": torch.arange(4.0)},
            items={"tests": torch.eye(4)},
            pairs=torch.tensor([[0, 1]]),
            critique=["well", None, None, None],
            said_by={"reward": "checker"},
        )
    )
    assert heard.reward.tolist() == [0, 1, 2, 3]
    assert heard.feedback.columns == {}
    assert heard.feedback.items["tests"].shape == (4, 4)
    assert heard.pairs.tolist() == [[0, 1]]
    assert heard.feedback.critique[0] == "well"
    assert heard.feedback.said_by == {"reward": "checker"}


def test_a_second_judge_adds_and_does_not_silence_the_first(table: Rollouts) -> None:
    first = table.hear(
        Feedback(pairs=torch.tensor([[0, 1]]), items={"tests": torch.ones(4, 2)}, said_by={"pairs": "person"}, critique=list("wxyz"))
    )
    both = first.hear(Feedback(columns={"cost": torch.zeros(4)}, items={"rubric": torch.zeros(4, 1)}, said_by={"cost": "meter"}))
    assert both.pairs.tolist() == [[0, 1]]
    assert set(both.feedback.items) == {"tests", "rubric"}
    assert both.feedback.said_by == {"pairs": "person", "cost": "meter"}
    assert both.feedback.critique == list("wxyz")


def test_hear_cannot_write_what_was_drawn(table: Rollouts) -> None:
    with pytest.raises(TableError, match="written once"):
        table.hear(Feedback(columns={"sampled_logp": torch.zeros(4, 3)}))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (Feedback(items={"tests": torch.ones(3, 2)}), "tests has 3 rows, the table has 4"),
        (Feedback(critique=["one"]), "critique has 1 rows, the table has 4"),
        (Feedback(pairs=torch.tensor([[0, 4]])), r"(?s)a pair names a row that is not there.*0 to 3"),
        (Feedback(pairs=torch.tensor([[-1, 0]])), "a pair names a row that is not there"),
        (Feedback(columns={"reward": torch.ones(3)}), "reward has 3 rows, the table has 4"),
    ],
)
def test_what_was_said_of_other_rows_is_refused(table: Rollouts, said: Feedback, words: str) -> None:
    with pytest.raises(TableError, match=words):
        table.hear(said)


def test_pairs_without_a_probability_are_certain(table: Rollouts) -> None:
    heard = table.hear(Feedback(pairs=torch.tensor([[0, 1], [2, 3]])))
    assert heard.probability.tolist() == [1, 1]
    assert heard.select(torch.tensor([2, 3])).probability.tolist() == [1]


def test_a_pair_stays_when_both_its_rows_stay_and_is_renumbered(table: Rollouts) -> None:
    heard = table.hear(Feedback(pairs=torch.tensor([[0, 1], [3, 2], [0, 3]]), probability=torch.tensor([0.9, 0.8, 0.7])))
    some = heard.select(torch.tensor([3, 0]))
    assert some.pairs.tolist() == [[1, 0]]
    assert some.probability.tolist() == pytest.approx([0.7])


def test_pairs_of_the_second_table_are_shifted_by_the_rows_of_the_first(table: Rollouts) -> None:
    heard = table.hear(Feedback(pairs=torch.tensor([[1, 0]]), probability=torch.tensor([0.6])))
    both = heard.concat(heard)
    assert both.pairs.tolist() == [[1, 0], [5, 4]]
    assert both.probability.tolist() == pytest.approx([0.6, 0.6])


def test_items_and_critiques_that_one_side_lacks_are_holes(table: Rollouts, draw: Draw) -> None:
    mine = table.hear(Feedback(items={"tests": torch.ones(4, 2)}))
    other = draw(["c"], [1], 1).hear(Feedback(items={"tests": torch.zeros(1, 3), "rubric": torch.ones(1, 1)}, critique=["short"]))
    said = mine.concat(other).feedback
    assert said.items["tests"][:4, :2].eq(1).all()
    assert said.items["tests"][:4, 2].isnan().all()
    assert said.items["tests"][4].tolist() == [0, 0, 0]
    assert said.items["rubric"][:4].isnan().all()
    assert said.critique == [None] * 4 + ["short"]
    assert mine.concat(other).select(torch.tensor([4])).feedback.critique == ["short"]


# best


def test_the_best_of_each_group_is_the_first_on_ties(table: Rollouts) -> None:
    assert table.best(torch.tensor([1.0, 1.0, 0.0, 2.0])).key.tolist() == [100, 103]


def test_rows_that_nobody_scored_do_not_compete() -> None:
    assert best_of_each(torch.tensor([NAN, -5.0, NAN, 3.0]), torch.tensor([7, 7, 9, 9])).tolist() == [1, 3]


def test_a_group_that_nobody_scored_has_no_best_and_takes_nobody_elses() -> None:
    assert best_of_each(torch.tensor([1.0, NAN, NAN]), torch.tensor([7, 9, 9])).tolist() == [0]


def test_the_worst_possible_score_is_still_a_score_of_its_own_group() -> None:
    assert best_of_each(torch.tensor([0.0, -torch.inf, -torch.inf]), torch.tensor([7, 9, 9])).tolist() == [0, 1]


def test_rows_outside_every_group_stand_alone() -> None:
    assert best_of_each(torch.tensor([1.0, 2.0, 0.0]), torch.tensor([-1, 7, -1])).tolist() == [0, 1, 2]


# blank


def test_blank_rows_have_no_steps_and_their_group_is_their_context() -> None:
    rows = blank([Context("a", ""), Context("b", ""), Context("a", "")])
    assert rows.steps.shape == (3, 0)
    assert rows.group.tolist() == [digest("a"), digest("b"), digest("a")]
    assert rows.stop.tolist() == [StopReason.CUT] * 3
    assert rows.length.tolist() == [0, 0, 0]


def test_tables_of_different_draws_join_by_context() -> None:
    both = blank([Context("a", "")]).concat(blank([Context("a", ""), Context("b", "")]))
    assert both.group.unique().numel() == 2


def test_blank_rows_take_the_steps_of_a_table_that_joins_them(table: Rollouts) -> None:
    both = blank([Context("c", "")]).concat(table)
    assert both.steps[0].tolist() == [0, 0, 0]
    assert not both.mask[0].any()
    same(both.select(torch.arange(1, 5)).attach(), table.concat(blank([Context("c", "")])).select(torch.arange(4)))
