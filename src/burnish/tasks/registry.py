"""Every text task by name, and `mix`, which draws from all of those with short answers."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, ClassVar

from burnish.tasks import numbers, strings
from burnish.tasks.base import Problem, TextTask
from burnish.tasks.rules import Rules
from burnish.tasks.stack import Stack

MIXED: tuple[type[TextTask], ...] = (
    numbers.Add, numbers.Sub, numbers.Mul, numbers.Max, numbers.Compare, numbers.Expr, numbers.Next,
    strings.Sort, strings.Reverse, strings.Count, strings.Last, strings.Repeat, Rules,
)  # fmt: skip
_ALONE: tuple[type[TextTask], ...] = (*MIXED, Stack)
PARTS: dict[str, TextTask] = {task.name: task() for task in _ALONE}


class Mix(TextTask):
    """All tasks with one right answer, and `rules`, drawn uniformly: the default. `meta["task"]` says which one a problem is from."""

    name: ClassVar[str] = "mix"

    def problem(self, rng: random.Random, level: int) -> Problem:
        """Draw a task, then one of its problems of this level."""
        return PARTS[rng.choice(MIXED).name].problem(rng, level)

    def check(self, text: str, meta: Mapping[str, Any]) -> float:
        """What the problem's own task says."""
        return PARTS[meta["task"]].check(text, meta)


TASKS: dict[str, type[TextTask]] = {**{task.name: task for task in _ALONE}, "mix": Mix}
