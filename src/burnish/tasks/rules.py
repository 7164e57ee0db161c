"""`rules`: write a string that keeps one to six rules. Each rule is one item of feedback."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from burnish.tasks.base import Problem, TextTask
from burnish.tasks.closed import LETTERS, letters

ENGLISH = {
    "len": "has exactly {} letters", "first": "begins with {}", "last": "ends with {}", "has": "contains {}", "no": "does not contain {}",
}  # fmt: skip
LONGEST = 15


def keeps(text: str, kind: str, value: str) -> bool:
    """Does this string of letters keep the rule?"""
    if kind == "len":
        return len(text) == int(value)
    if kind == "first":
        return text.startswith(value)
    if kind == "last":
        return text.endswith(value)
    return (value in text) == (kind == "has")


def witness(rng: random.Random, rules: Sequence[Sequence[str]]) -> str:
    """A random string that keeps all these rules (they must not contradict each other)."""
    first, last, size = (next((value for kind, value in rules if kind == wanted), None) for wanted in ("first", "last", "len"))
    needed = [value for kind, value in rules if kind == "has" and value not in (first, last)]
    allowed = [letter for letter in LETTERS if ["no", letter] not in [list(rule) for rule in rules]]
    ends = (first is not None) + (last is not None)
    length = int(size) if size else max(rng.randint(3, 6), ends + len(needed))
    middle = needed + [rng.choice(allowed) for _ in range(length - ends - len(needed))]
    rng.shuffle(middle)
    return (first or "") + "".join(middle) + (last or "")


class Rules(TextTask):
    """Write a string of lower-case letters that keeps every rule: `rules;len6;nob;firstf`. Level 1: 1 to 3 rules on up to 7 letters,
    level 2: 3 to 5 on up to 10, level 3: 5 to 6 on up to 13.

    The reward is the share of rules that are kept; the answer is right when it is 1.0. Text that is not 1 to 15 lower-case letters keeps
    no rule."""

    name: ClassVar[str] = "rules"
    gives: ClassVar[frozenset[str]] = frozenset({"reward", "demonstration", "items"})

    def problem(self, rng: random.Random, level: int) -> Problem:
        """Draw a string, then rules that are true of it: so an answer exists."""
        text = letters(rng, rng.randint(*((3, 7), (6, 10), (9, 13))[level - 1]))
        absent = [letter for letter in LETTERS if letter not in text]
        true = [["len", str(len(text))], ["first", text[0]], ["last", text[-1]]]
        true += [["has", letter] for letter in rng.sample(sorted(set(text)), min(2, len(set(text))))]
        true += [["no", letter] for letter in rng.sample(absent, 2)]
        rules = rng.sample(true, rng.randint(*((1, 3), (3, 5), (5, 6))[level - 1]))
        question = "".join(f";{kind}{value}" for kind, value in rules)
        said = " and ".join(ENGLISH[kind].format(value) for kind, value in rules)
        meta = {"task": self.name, "answer": witness(rng, rules), "rules": rules}
        return Problem(self.name + question, f"Write a string of lower-case letters that {said}. Answer with just the string.", meta)

    def items(self, text: str, meta: Mapping[str, Any]) -> list[bool]:
        """One entry per rule, in the order of the question: is it kept?"""
        text = text.strip() if isinstance(text, str) else ""
        valid = text.isascii() and text.isalpha() and text.islower() and len(text) <= LONGEST
        return [valid and keeps(text, kind, value) for kind, value in meta["rules"]]

    def check(self, text: str, meta: Mapping[str, Any]) -> float:
        """The share of rules that are kept, in [0, 1]; 1.0 is right."""
        kept = self.items(text, meta)
        return sum(kept) / len(kept)
