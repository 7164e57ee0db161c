"""What every task must keep, and what a perfect judge says."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

from burnish.tasks import truth
from burnish.tasks.base import generator, is_held_out
from burnish.tasks.registry import MIXED, TASKS

CASES = [(name, level) for name, task in TASKS.items() for level in task.levels]


@pytest.mark.parametrize(("name", "level"), CASES)
def test_a_reference_answer_is_right_and_fits(name: str, level: int) -> None:
    task = TASKS[name]()
    for i in range(60):
        problem = task.problem(generator("test", name, level, i), level)
        answer = problem.meta["answer"]
        assert task.check(answer, problem.meta) == 1.0
        assert len(answer) < task.max_steps  # and one step for the end
        assert problem.meta["task"] in TASKS
        assert problem.question.startswith(problem.meta["task"])
        assert truth.critique(answer, problem.meta) == "ok"
        assert truth.score(answer, problem.meta) == 9
        assert task.check("?", problem.meta) == 0.0


@pytest.mark.parametrize(("name", "level"), CASES)
def test_the_same_generator_draws_the_same_problem(name: str, level: int) -> None:
    task = TASKS[name]()
    assert [task.problem(generator(1, i), level) for i in range(5)] == [task.problem(generator(1, i), level) for i in range(5)]
    assert len({task.problem(generator(1, i), level).question for i in range(50)}) > 20


def test_a_higher_level_is_longer() -> None:
    for name in ("add", "sort", "reverse", "expr", "rules", "last", "count", "max"):
        sizes = [sum(len(TASKS[name]().problem(generator(i), level).question) for i in range(100)) for level in (1, 2, 3)]
        assert sizes == sorted(sizes)


def test_mix_draws_every_task_and_about_one_question_in_eight_is_held_out() -> None:
    problems = [TASKS["mix"]().problem(generator("mix", i), 1) for i in range(2600)]
    drawn = Counter(problem.meta["task"] for problem in problems)
    assert set(drawn) == {task.name for task in MIXED}
    assert min(drawn.values()) > 120
    assert 0.1 < sum(is_held_out(problem.question) for problem in problems) / len(problems) < 0.15


def test_the_tasks_are_read_without_torch() -> None:
    code = "import sys, burnish.tasks.registry, burnish.tasks.truth, burnish.formats.registry; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


CLOSED = {"task": "add", "answer": "146"}
RULES = {"task": "rules", "answer": "fgh", "rules": [["len", "3"], ["first", "f"], ["no", "b"]]}


@pytest.mark.parametrize(
    ("text", "meta", "critique", "score", "first", "reflection"),
    [
        ("146", CLOSED, "ok", 9, 0, "ok"),
        ("136", CLOSED, "@2>", 6, 2, "@24"),
        ("156", CLOSED, "@2<", 6, 2, "@24"),
        ("1466", CLOSED, "len<", 7, 4, "len<"),
        ("14", CLOSED, "len>", 6, 3, "@36"),
        ("?", CLOSED, "len>", 0, 1, "@11"),
        ("fgb", RULES, "#3", 6, 3, "#3"),
        ("fg", RULES, "#1", 6, 1, "#1"),
    ],
)
def test_a_perfect_judge_says(text: str, meta: dict, critique: str, score: int, first: int, reflection: str) -> None:
    assert truth.critique(text, meta) == critique
    assert truth.score(text, meta) == score
    assert truth.first_error(text, meta) == first
    assert truth.reflection(text, meta) == reflection


def test_a_program_that_passes_only_the_shown_tests_is_not_ok() -> None:
    meta = {"task": "stack", "answer": "ab+", "inputs": [[2, 2]] * 3 + [[1, 5]] * 3, "expected": [4] * 3 + [6] * 3, "shown": 3}
    assert (truth.critique("ab*", meta), truth.score("ab*", meta), truth.right("ab*", meta)) == ("no", 8, False)
