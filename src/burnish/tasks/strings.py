"""Tasks about strings: order, reverse, count, cut, repeat."""

from __future__ import annotations

import random
from typing import ClassVar

from burnish.tasks.base import Problem
from burnish.tasks.closed import ClosedTask, letters

ONLY_STRING = "Answer with just the string."


class Sort(ClosedTask):
    """Digits in ascending order. Level 1: 4 to 7 digits, level 2: 8 to 10, level 3: 11 to 14."""

    name: ClassVar[str] = "sort"

    def problem(self, rng: random.Random, level: int) -> Problem:
        """Draw the digits."""
        digits = letters(rng, rng.randint(*((4, 7), (8, 10), (11, 14))[level - 1]), "0123456789")
        return self.closed(digits, "".join(sorted(digits)), f"Sort the digits {digits} in ascending order. {ONLY_STRING}")


class Reverse(ClosedTask):
    """Letters from the last to the first. Level 1: 4 to 8 letters, level 2: 9 to 11, level 3: 12 to 15."""

    name: ClassVar[str] = "reverse"

    def problem(self, rng: random.Random, level: int) -> Problem:
        """Draw the letters."""
        text = letters(rng, rng.randint(*((4, 8), (9, 11), (12, 15))[level - 1]))
        return self.closed(text, text[::-1], f"Write {text} backwards. {ONLY_STRING}")


class Count(ClosedTask):
    """How often a letter occurs. Level 1: 5 to 9 letters, level 2: 10 to 14, level 3: 15 to 20."""

    name: ClassVar[str] = "count"

    def problem(self, rng: random.Random, level: int) -> Problem:
        """Draw a string over four letters and one of these."""
        alphabet = letters(rng, 4)
        wanted = alphabet[0]
        text = letters(rng, rng.randint(*((5, 9), (10, 14), (15, 20))[level - 1]), alphabet + wanted)
        return self.closed(f"{wanted};{text}", text.count(wanted), f"How often does {wanted} occur in {text}? Answer with just the number.")


class Last(ClosedTask):
    """The last k letters. Level 1: up to 3 of 4 to 8 letters, level 2: 3 to 5 of 9 to 12, level 3: 5 to 8 of 13 to 18."""

    name: ClassVar[str] = "last"

    def problem(self, rng: random.Random, level: int) -> Problem:
        """Draw the letters and k."""
        text = letters(rng, rng.randint(*((4, 8), (9, 12), (13, 18))[level - 1]))
        size = rng.randint(*((1, 3), (3, 5), (5, 8))[level - 1])
        return self.closed(f"{size};{text}", text[-size:], f"What are the last {size} letters of {text}? {ONLY_STRING}")


class Repeat(ClosedTask):
    """The same letters again and again. Level 1: 2 to 4 letters twice, level 2: 5 to 7 twice, level 3: 4 to 5 three times."""

    name: ClassVar[str] = "repeat"

    def problem(self, rng: random.Random, level: int) -> Problem:
        """Draw the letters."""
        text, times = letters(rng, rng.randint(*((2, 4), (5, 7), (4, 5))[level - 1])), 3 if level == 3 else 2
        return self.closed(f"{times};{text}", text * times, f"Write {text} {times} times without a space. {ONLY_STRING}")
