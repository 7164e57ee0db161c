"""`stack`: write a short stack-machine program that passes unit tests. Programs are interpreted by a bounded loop, never run as Python."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from burnish.tasks.base import Problem, TextTask

SHOWN, HIDDEN = 3, 3
LONGEST = 15
OPERATIONS = "+-*"


def interpret(program: str, inputs: Sequence[int]) -> int | None:
    """What the program leaves on the stack. `a` and `b` push the inputs, a digit pushes itself, `+ - *` take two numbers and push one.

    None if the program is empty, longer than 15 instructions, has an unknown instruction, runs out of numbers or leaves more than one."""
    stack: list[int] = []
    if not 0 < len(program) <= LONGEST:
        return None
    for instruction in program:
        if instruction in "ab":
            stack.append(inputs["ab".index(instruction)])
        elif instruction in "0123456789":
            stack.append(int(instruction))
        elif instruction in OPERATIONS and len(stack) >= 2:
            right, left = stack.pop(), stack.pop()
            stack.append(left + right if instruction == "+" else left - right if instruction == "-" else left * right)
        else:
            return None
    return stack[0] if len(stack) == 1 else None


def draw_program(rng: random.Random, operations: str) -> str:
    """A random program that uses these operations in this order and at least one input."""
    while True:
        operands = [rng.choice("aabb123") for _ in range(len(operations) + 1)]
        if len(operations) == 1 or rng.random() < 0.7:
            program = operands[0] + "".join(operand + operation for operand, operation in zip(operands[1:], operations, strict=False))
        else:
            program = "".join(operands) + operations
        if "a" in program or "b" in program:
            return program


class Stack(TextTask):
    """Write a program for a stack machine: `stack+*;2,3>15;1,4>20;0,2>4` shows its operations and three examples (inputs a,b > result);
    a right answer is `ab+b*`. Level 1: one operation, level 2: two, level 3: two that are not told (`?`).

    The reward is the share of six unit tests passed: the three examples and three hidden ones. See `interpret` for the instructions."""

    name: ClassVar[str] = "stack"
    gives: ClassVar[frozenset[str]] = frozenset({"reward", "demonstration", "tests"})

    def problem(self, rng: random.Random, level: int) -> Problem:
        """Draw a program and inputs; the tests are what it does with them."""
        operations = "".join(rng.choice(OPERATIONS) for _ in range(1 if level == 1 else 2))
        program = draw_program(rng, operations)
        inputs: list[tuple[int, int]] = []
        while len(inputs) < SHOWN + HIDDEN:
            pair = (rng.randint(0, 9), rng.randint(0, 9))
            if pair not in inputs:
                inputs.append(pair)
        expected = [interpret(program, pair) for pair in inputs]
        shown = [f"{a},{b}>{result}" for (a, b), result in zip(inputs[:SHOWN], expected, strict=False)]
        meta = {"task": self.name, "answer": program, "inputs": [list(pair) for pair in inputs], "expected": expected, "shown": SHOWN}
        question = self.name + ";".join([operations if level < 3 else "?", *shown])
        return Problem(question, self._words(operations if level < 3 else "", shown), meta)

    @staticmethod
    def _words(operations: str, shown: list[str]) -> str:
        told = f" It uses the operations {' and '.join(operations)}." if operations else ""
        return (
            "Write a program for a stack machine. a and b push the inputs, a digit pushes itself, + - * replace the top two numbers by "
            f"the result.{told} Examples (a,b>result): {'; '.join(shown)}. Answer with just the program, like ab+b*."
        )

    def tests(self, text: str, meta: Mapping[str, Any]) -> list[bool]:
        """One entry per unit test, the shown ones first: is it passed?"""
        program = text.strip() if isinstance(text, str) else ""
        return [interpret(program, pair) == wanted for pair, wanted in zip(meta["inputs"], meta["expected"], strict=False)]

    def check(self, text: str, meta: Mapping[str, Any]) -> float:
        """The share of unit tests passed, in [0, 1]; 1.0 is right."""
        passed = self.tests(text, meta)
        return sum(passed) / len(passed)
