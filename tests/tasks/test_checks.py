"""What is right, what is wrong, and that no text can harm a check."""

from __future__ import annotations

import pytest

from burnish.tasks.registry import PARTS, TASKS
from burnish.tasks.stack import interpret

CLOSED = {"task": "sub", "answer": "-3"}
RULES = {"task": "rules", "answer": "fgh", "rules": [["len", "3"], ["first", "f"], ["no", "b"], ["has", "h"]]}
STACK = {
    "task": "stack",
    "answer": "ab+",
    "inputs": [[1, 2], [3, 4], [0, 5], [2, 2], [7, 1], [9, 9]],
    "expected": [3, 7, 5, 4, 8, 18],
    "shown": 3,
}
GARBAGE = ["", " ", "\x00", "é", "٣", "None", "__import__('os')._exit(1)", "9" * 5000, "9**9**9", "a" * 5000]
GARBAGE += ["<end>", "NaN", "\n\n-", "{}", "%s"]


@pytest.mark.parametrize(
    ("text", "reward"),
    [("-3", 1.0), (" -3\n", 1.0), ("3", 0.0), ("−3", 0.0), ("-03", 0.0), ("-3.0", 0.0), ("- 3", 0.0), ("-3 or 3", 0.0), ("-3<end>", 0.0)],
)
def test_a_closed_answer_is_compared_character_for_character(text: str, reward: float) -> None:
    assert TASKS["mix"]().check(text, CLOSED) == reward


def test_a_thousands_separator_is_not_ignored() -> None:
    assert PARTS["mul"].check("1,234", {"task": "mul", "answer": "1234"}) == 0.0


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("fgh", [True, True, True, True]),
        (" fgh ", [True, True, True, True]),
        ("fghh", [False, True, True, True]),
        ("bgh", [True, False, False, True]),
        ("FGH", [False] * 4),
        ("f1h", [False] * 4),
        ("", [False] * 4),
    ],
)
def test_rules_says_which_rules_are_kept_and_pays_their_share(text: str, kept: list[bool]) -> None:
    assert PARTS["rules"].items(text, RULES) == kept  # type: ignore[attr-defined]
    assert PARTS["rules"].check(text, RULES) == sum(kept) / 4


@pytest.mark.parametrize(("program", "left"), [("ab+", 9), ("ab-", 5), ("ab*a+", 21), ("3", 3), ("a", 7), ("ab2-*", 0)])
def test_a_program_leaves_its_result(program: str, left: int) -> None:
    assert interpret(program, (7, 2)) == left


@pytest.mark.parametrize("program", ["", "+", "a+", "ab", "abx", "ab+ ", "c", "a" * 16, "ab/"])
def test_a_program_that_does_not_run_leaves_nothing(program: str) -> None:
    assert interpret(program, (7, 2)) is None


def test_stack_pays_the_share_of_tests_passed() -> None:
    stack = PARTS["stack"]
    assert stack.check("ba+", STACK) == 1.0
    assert stack.check("aa+", STACK) == pytest.approx(2 / 6)
    assert stack.tests("ab", STACK) == [False] * 6  # type: ignore[attr-defined]


@pytest.mark.parametrize("text", GARBAGE)
@pytest.mark.parametrize("meta", [CLOSED, RULES, STACK], ids=["closed", "rules", "stack"])
def test_garbage_is_worth_nothing_and_never_raises(text: str, meta: dict) -> None:
    assert PARTS[meta["task"]].check(text, meta) == 0.0


def test_an_answer_that_is_not_text_is_worth_nothing() -> None:
    for meta in (CLOSED, RULES, STACK):
        assert PARTS[meta["task"]].check(None, meta) == 0.0  # type: ignore[arg-type]
