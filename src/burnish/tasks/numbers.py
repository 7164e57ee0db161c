"""Tasks about numbers: sums, products, comparisons, expressions, sequences."""

from __future__ import annotations

import random
from typing import ClassVar

from burnish.tasks.base import Problem
from burnish.tasks.closed import ClosedTask, of_digits

ONLY_NUMBER = "Answer with just the number."


class Add(ClosedTask):
    """The sum of two numbers. Level 1: 0 to 99, level 2: three digits, level 3: four digits."""

    name: ClassVar[str] = "add"

    def problem(self, rng: random.Random, level: int) -> Problem:
        """Draw two numbers of `level` + 1 digits."""
        left, right = of_digits(rng, level + 1), of_digits(rng, level + 1)
        return self.closed(f"{left}+{right}", left + right, f"What is {left} + {right}? {ONLY_NUMBER}")


class Sub(ClosedTask):
    """The difference of two numbers, negative half of the time. Level 1: 0 to 99, level 2: three digits, level 3: four digits."""

    name: ClassVar[str] = "sub"

    def problem(self, rng: random.Random, level: int) -> Problem:
        """Draw two numbers of `level` + 1 digits."""
        left, right = of_digits(rng, level + 1), of_digits(rng, level + 1)
        return self.closed(f"{left}-{right}", left - right, f"What is {left} - {right}? {ONLY_NUMBER}")


class Mul(ClosedTask):
    """The product of two numbers. Level 1: up to 30 by one digit, level 2: two digits by one, level 3: two digits by two."""

    name: ClassVar[str] = "mul"

    def problem(self, rng: random.Random, level: int) -> Problem:
        """Draw the factors, in either order."""
        high = (31, 100, 100)[level - 1]
        factors = [rng.randrange(1 if level == 1 else 10, high), rng.randrange(2, 10) if level < 3 else rng.randrange(11, 100)]
        rng.shuffle(factors)
        left, right = factors
        return self.closed(f"{left}*{right}", left * right, f"What is {left} times {right}? {ONLY_NUMBER}")


class Max(ClosedTask):
    """The largest of some numbers. Level 1: 3 to 4 of up to two digits, level 2: 5 to 6 of three, level 3: 7 to 8 of four."""

    name: ClassVar[str] = "max"

    def problem(self, rng: random.Random, level: int) -> Problem:
        """Draw the numbers; at levels 2 and 3 they share a first digit half of the time."""
        numbers = [of_digits(rng, level + 1) for _ in range(rng.randint(2 * level + 1, 2 * level + 2))]
        if level > 1 and rng.random() < 0.5:
            lead = rng.randint(1, 9) * 10**level
            numbers = [lead + number % 10**level for number in numbers]
        listed = ",".join(map(str, numbers))
        return self.closed(listed, max(numbers), f"Which is the largest of {listed.replace(',', ', ')}? {ONLY_NUMBER}")


class Compare(ClosedTask):
    """Which sign stands between two sides: `<`, `>` or `=`. Level 1: numbers, level 2: a sum against a number, level 3: two products."""

    name: ClassVar[str] = "compare"

    def problem(self, rng: random.Random, level: int) -> Problem:
        """Draw the left side, then a right side that is near it."""
        (left_text, left), (right_text, right) = self._side(rng, level), self._side(rng, level)
        if level == 2:
            right = max(0, left + rng.randint(-9, 9)) if rng.random() < 0.8 else left
            right_text = str(right)
        elif level == 1 and rng.random() < 0.25:
            right_text, right = left_text, left
        sign = "<" if left < right else ">" if left > right else "="
        words = f"Is {left_text} smaller than, larger than or equal to {right_text}? Answer with just one of the signs < > =."
        return self.closed(f"{left_text},{right_text}", sign, words)

    @staticmethod
    def _side(rng: random.Random, level: int) -> tuple[str, int]:
        first, second = rng.randrange(100), rng.randrange(100)
        if level == 1:
            return str(first), first
        if level == 2:
            return f"{first}+{second}", first + second
        return f"{first % 30}*{second % 30}", (first % 30) * (second % 30)


class Expr(ClosedTask):
    """The value of an expression. Level 1: three numbers from 1 to 9 (a+b*c, (a+b)*c, a*b-c, a+b-c), level 2: four, level 3: five."""

    name: ClassVar[str] = "expr"

    def problem(self, rng: random.Random, level: int) -> Problem:
        """Draw a shape, then its numbers."""
        a, b, c, d, e = (rng.randint(1, 9) for _ in range(5))
        if level == 1:
            shapes = (
                (f"{a}+{b}*{c}", a + b * c),
                (f"({a}+{b})*{c}", (a + b) * c),
                (f"{a}*{b}-{c}", a * b - c),
                (f"{a}+{b}-{c}", a + b - c),
            )
        elif level == 2:
            shapes = (
                (f"{a}*{b}+{c}*{d}", a * b + c * d),
                (f"({a}+{b})*{c}-{d}", (a + b) * c - d),
                (f"{a}*({b}+{c})+{d}", a * (b + c) + d),
                (f"{a}+{b}*{c}-{d}", a + b * c - d),
            )
        else:
            shapes = (
                (f"({a}+{b})*({c}+{d})-{e}", (a + b) * (c + d) - e),
                (f"{a}*{b}*{c}-{d}*{e}", a * b * c - d * e),
                (f"{a}*({b}+{c}*{d})+{e}", a * (b + c * d) + e),
                (f"({a}-{b})*{c}+{d}*{e}", (a - b) * c + d * e),
            )
        body, value = rng.choice(shapes)
        return self.closed(body, value, f"What is {body}? {ONLY_NUMBER}")


class Next(ClosedTask):
    """The next number of a sequence. Level 1: four terms, steps of 1 to 9, level 2: of up to 30 either way, level 3: growing steps."""

    name: ClassVar[str] = "next"

    def problem(self, rng: random.Random, level: int) -> Problem:
        """Draw a start, a step and, at level 3, how much the step grows each time."""
        start = rng.randrange(50)
        step = rng.randint(1, 9) if level == 1 else rng.choice((-1, 1)) * rng.randint(1, 30)
        growth = 0 if level < 3 else rng.choice((-5, -4, -3, -2, 2, 3, 4, 5))
        if level > 1 and step < 0:
            start += 100
        terms = [start]
        for i in range(4):
            terms.append(terms[-1] + step + i * growth)
        listed = ",".join(map(str, terms[:4]))
        return self.closed(listed, terms[4], f"Which number comes next: {listed.replace(',', ', ')}? {ONLY_NUMBER}")
