"""What the tasks with one right answer share: the answer is compared as a string, nothing is interpreted."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from burnish.tasks.base import Problem, TextTask

LETTERS = "bcdfghjklmnpqrstvwxyz"  # no vowels, so that no drawn string spells a word of the grammar


class ClosedTask(TextTask):
    """One right answer per question. Reward 1.0 for exactly this answer, else 0.0."""

    def check(self, text: str, meta: Mapping[str, Any]) -> float:
        """1.0 if the text is the answer, character for character; only white space around it is ignored, so `-3` is not `3`, `03`
        is not `3` and `1,234` is not `1234`."""
        return float(isinstance(text, str) and text.strip() == str(meta["answer"]))

    def closed(self, body: str, answer: object, words: str) -> Problem:
        """A problem whose question is this task's name and a body."""
        return Problem(self.name + body, words, {"task": self.name, "answer": str(answer)})


def letters(rng: random.Random, size: int, alphabet: str = LETTERS) -> str:
    """A string of this many letters."""
    return "".join(rng.choice(alphabet) for _ in range(size))


def of_digits(rng: random.Random, digits: int) -> int:
    """A number of at most two digits for `digits` 2 or less; of exactly this many digits above."""
    return rng.randrange(10 ** (digits - 1) if digits > 2 else 0, 10**digits)
