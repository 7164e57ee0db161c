"""Contexts, chance and errors."""

from __future__ import annotations

import random
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import burnish.types
from burnish.errors import BurnishError, DataError, Refused, TableError, nearest
from burnish.lazy import lazy
from burnish.types import Context, Origin, StopReason, digest, mix, normal, shuffled, uniform
from burnish.types.chance import generator
from burnish.types.shapes import expect

FEW = settings(deadline=None, derandomize=True, max_examples=25, database=None)


# Contexts


def test_two_contexts_are_the_same_only_if_their_id_is() -> None:
    assert Context("a", "one", meta={"answer": 1}) == Context("a", "two")
    assert Context("a", "one") != Context("b", "one")
    assert len({Context("a", "one"), Context("a", [{"role": "user"}]), Context("b", "")}) == 2


def test_another_form_has_its_own_id_and_keeps_the_root() -> None:
    task = Context("task/1", "2+2", meta={"answer": "4"}, user="u")
    draft = task.about("refine", "2+2, you said 5", draft="5")
    again = draft.about("check", "is 4 right?", critique="no")
    assert draft.id != task.id
    assert again.root is task
    assert again.meta["answer"] == "4"
    assert again.user == "u"
    assert dict(again.parts) == {"draft": "5", "critique": "no"}
    assert again.id.startswith("task/1|check:")
    assert dict(task.parts) == {}


def test_the_id_of_a_form_names_what_is_shown() -> None:
    task = Context("t", "q")
    assert task.about("refine", "x").id == task.about("refine", "x").id
    assert task.about("refine", "x").id != task.about("refine", "y").id
    assert task.about("refine", "x").id != task.about("check", "x").id
    assert task.about("check", "x").about("refine", "y").id == task.about("refine", "y").id


def test_a_task_is_its_own_root() -> None:
    task = Context("t", "q")
    assert task.root is task


def test_digests_are_stable_and_fit_a_signed_column() -> None:
    assert digest("task/1") == 2307634922465358941
    assert digest("abc") == digest("abc") != digest("abd")
    assert all(0 <= digest(str(n)) < 1 << 63 for n in range(1000))
    assert len({digest(str(n)) for n in range(1000)}) == 1000


# Chance


def test_the_first_number_of_splitmix64_from_seed_zero() -> None:
    assert int(mix(0)) % (1 << 64) == 0xE220A8397B1DCDAF


def test_the_order_of_parts_matters_and_their_form_does_not() -> None:
    assert mix(1, 2) != mix(2, 1)
    assert mix(1, 2) != mix(1, 3)
    assert mix(1) != mix(1, 0)
    assert mix("rollout", 1) == mix(digest("rollout"), torch.tensor(1))
    assert mix(-1) != mix(1)


def test_keys_broadcast_and_equal_the_single_ones() -> None:
    contexts, copies = torch.arange(5)[:, None], torch.arange(3)
    keys = mix(7, "rollout", contexts, copies)
    assert keys.shape == (5, 3)
    assert keys.unique().numel() == 15
    assert all(int(keys[i, j]) == int(mix(7, "rollout", i, j)) for i in range(5) for j in range(3))


@given(st.permutations(range(6)))
@FEW
def test_a_draw_does_not_depend_on_order_or_batch(order: list[int]) -> None:
    rows, way = torch.arange(6), torch.tensor(order)
    assert torch.equal(uniform(mix(3, rows))[way], uniform(mix(3, way)))
    assert torch.equal(uniform(mix(3, rows))[:2], uniform(mix(3, rows[:2])))


def test_numbers_are_uniform_and_independent_of_their_neighbours() -> None:
    x = uniform(mix(5), torch.arange(20000))
    assert x.dtype == torch.float64
    assert float(x.min()) >= 0
    assert float(x.max()) < 1
    bins = torch.histc(x, 100, 0, 1)
    assert float(((bins - 200) ** 2 / 200).sum()) < 160  # chi-square with 99 degrees: 160 is beyond 1 in 10,000
    assert float(x.mean()) == pytest.approx(0.5, abs=0.01)
    assert float(x.var()) == pytest.approx(1 / 12, abs=0.003)
    assert abs(float(torch.corrcoef(torch.stack([x[:-1], x[1:]]))[0, 1])) < 0.03
    keys = uniform(mix(torch.arange(20000)), 0)
    assert abs(float(torch.corrcoef(torch.stack([x, keys]))[0, 1])) < 0.03


def test_a_shuffle_is_a_permutation_of_its_key() -> None:
    order = shuffled(mix(1), 50)
    assert sorted(order.tolist()) == list(range(50))
    assert torch.equal(order, shuffled(mix(1), 50))
    assert not torch.equal(order, shuffled(mix(2), 50))


def test_every_order_of_three_comes_up_equally_often() -> None:
    counts: dict[tuple[int, ...], int] = {}
    for seed in range(1200):
        order = tuple(shuffled(mix(seed), 3).tolist())
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert all(150 < n < 250 for n in counts.values())


def test_a_private_generator_repeats_and_takes_every_key() -> None:
    key = mix(-7, "weights")
    assert torch.equal(torch.randn(4, generator=generator(key)), torch.randn(4, generator=generator(key)))
    assert torch.rand(1, generator=generator(torch.tensor(-1))).item() < 1


def test_chance_reads_and_writes_no_global_state() -> None:
    torch.manual_seed(0), np.random.seed(0), random.seed(0)
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
    first = uniform(mix(1, "x"), torch.arange(4))
    shuffled(mix(1), 9), torch.randn(2, generator=generator(mix(3)))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]
    assert random.getstate() == before[2]
    torch.manual_seed(1)
    assert torch.equal(uniform(mix(1, "x"), torch.arange(4)), first)


# Errors and shapes


def test_an_error_is_one_message_of_what_where_seen_expected_and_fix() -> None:
    error = DataError("no reward", where="log.jsonl, line 7", seen="score", expected="reward", fix="rename the column")
    assert str(error).split("\n") == [
        "log.jsonl, line 7: no reward",
        "  seen:     score",
        "  expected: reward",
        "  fix:      rename the column",
    ]
    assert str(BurnishError("plain")) == "plain"
    assert "seen:     0" in str(BurnishError("zero", seen=0))


def test_many_errors_become_one_refusal_that_lists_them_all() -> None:
    one, two = Refused("first"), DataError("second", where="f")
    assert Refused.all([one]) is one
    assert isinstance(Refused.all([two]), Refused)
    text = str(Refused.all([one, two]))
    assert text.startswith("2 problems:")
    assert "1. first" in text
    assert "2. f: second" in text


def test_the_nearest_name_is_offered_or_else_all() -> None:
    assert nearest("lerning_rate", ["learning_rate", "seed"]) == "did you mean 'learning_rate'?"
    assert nearest("dr_grpo", ["dr-grpo", "x"]) == "did you mean 'dr-grpo'?"
    assert nearest("qqq", ["b", "a"]) == "known: a, b"
    assert nearest("qqq", []) == "known: none"


def test_expect_names_the_tensor_and_what_it_should_look_like() -> None:
    expect("BT", x=torch.zeros(2, 3), y=torch.ones(2, 3))
    with pytest.raises(TableError, match=r"(?s)y has the wrong shape.*\(2, 4\).*\(B,T\), like x \(2, 3\)"):
        expect("BT", x=torch.zeros(2, 3), y=torch.zeros(2, 4))
    with pytest.raises(TableError, match=r"(?s)x has the wrong shape.*expected: \(B\)"):
        expect("B", x=torch.zeros(2, 3))


def test_only_a_terminal_stop_is_the_end() -> None:
    assert [r.name for r in StopReason] == ["TERMINAL", "LIMIT", "CUT", "FAILED"]


def test_the_numbers_of_origins_and_stops_are_those_of_tables_on_disk() -> None:
    assert {o.name: int(o) for o in Origin} == {
        name: n for n, name in enumerate(["PADDING", "ENVIRONMENT", "POLICY", "PEER", "TEACHER", "DEMONSTRATION"])
    }
    assert [int(r) for r in StopReason] == [0, 1, 2, 3]


def test_types_answers_for_names_it_does_not_have() -> None:
    assert all(hasattr(burnish.types, name) for name in burnish.types.__all__)
    with pytest.raises(AttributeError, match="no 'Rolouts'"):
        _ = burnish.types.Rolouts


# What loads when


def fresh(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_parts_are_found_and_described_without_torch() -> None:
    code = """
import sys
from burnish import parts, types, errors
names = [part for slot in set(parts.SLOTS.values()) for part in parts.folder(slot)]
assert parts.use(parts.credit.normalized, eps=0.1).settings["eps"] == 0.1
types.Context("a", "b").about("c", "d")
print(len(names) > 20, "torch" in sys.modules, "numpy" in sys.modules)
"""
    assert fresh(code) == "True False False"


def test_a_lazy_module_loads_at_its_first_attribute() -> None:
    code = """
import sys
from burnish.lazy import lazy
colorsys = lazy("colorsys")
before = "colorsys" in sys.modules
colorsys.rgb_to_hsv(0, 0, 0)
print(before, "colorsys" in sys.modules)
"""
    assert fresh(code) == "False True"
    with pytest.raises(AttributeError):
        _ = lazy("math").no_such_name


def test_normal_numbers_have_the_moments_of_a_normal_distribution_and_belong_to_their_key():
    keys = mix(3, torch.arange(200_000))
    x = normal(keys)
    assert x.isfinite().all()
    assert abs(float(x.mean())) < 0.01
    assert abs(float((x**2).mean()) - 1) < 0.02
    assert abs(float((x**4).mean()) - 3) < 0.1
    assert torch.equal(normal(keys[7:9]), x[7:9])
