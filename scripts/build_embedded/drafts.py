"""Drafts: right ones, and plausible wrong ones of the kind that a learner makes."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from typing import Any

from burnish.tasks.closed import LETTERS
from burnish.tasks.rules import witness
from burnish.tasks.stack import OPERATIONS
from burnish.tasks.truth import right

FILLER = "?"
Meta = Mapping[str, Any]


def another_right(rng: random.Random, meta: Meta) -> str:
    """A right answer: the right one, or for `rules` any."""
    return witness(rng, meta["rules"]) if meta["task"] == "rules" else str(meta["answer"])


def wrong(rng: random.Random, question: str, meta: Meta) -> str:
    """A plausible wrong answer."""
    for _ in range(20):
        draft = _spoilt(rng, question, meta)
        if draft and not right(draft, meta):
            return draft
    return FILLER


def draft(rng: random.Random, question: str, meta: Meta, share_right: float = 0.5) -> str:
    """Right with this probability, else wrong, and a filler once in a while."""
    if rng.random() < share_right:
        return another_right(rng, meta)
    return FILLER if rng.random() < 0.1 else wrong(rng, question, meta)


def _spoilt(rng: random.Random, question: str, meta: Meta) -> str:
    answer, task = another_right(rng, meta), meta["task"]
    if task == "compare":
        return rng.choice("<>=")
    if task == "count":
        return str(max(0, int(answer) + rng.choice((-2, -1, -1, 1, 1, 2))))
    if task == "max" and rng.random() < 0.8:
        return rng.choice(question[3:].split(","))
    if task == "expr" and rng.random() < 0.4:
        return _left_to_right(question[4:])
    if re.fullmatch(r"-?\d+", answer) and task != "sort":
        return _near_number(rng, int(answer))
    if task == "stack":
        return _changed(rng, answer, "ab123" + OPERATIONS * 2)
    if task == "rules" and rng.random() < 0.3:
        return "".join(rng.choice(LETTERS) for _ in range(rng.randint(2, 8)))
    return _changed(rng, answer, "0123456789" if task == "sort" else LETTERS)


def _near_number(rng: random.Random, value: int) -> str:
    kind = rng.random()
    if kind < 0.3:
        return str(value + rng.choice((-1, 1, -2, 2)))
    if kind < 0.55:
        return str(value + rng.choice((-10, 10, -10, 10, -100, 100)))
    if kind < 0.62:
        return str(-value)
    return ("-" if value < 0 else "") + _changed(rng, str(abs(value)), "0123456789")


def _changed(rng: random.Random, text: str, alphabet: str) -> str:
    place, kind = rng.randrange(len(text)), rng.random()
    if kind < 0.4:
        return text[:place] + rng.choice(alphabet) + text[place + 1 :]
    if kind < 0.7 and len(text) > 1:
        place = rng.randrange(len(text) - 1)
        return text[:place] + text[place + 1] + text[place] + text[place + 2 :]
    if kind < 0.85 and len(text) > 1:
        return text[:place] + text[place + 1 :]
    return text[:place] + rng.choice(alphabet) + text[place:]


def _left_to_right(body: str) -> str:
    numbers, signs = list(map(int, re.findall(r"\d", body))), re.findall(r"[+*-]", body)
    value = numbers[0]
    for sign, number in zip(signs, numbers[1:], strict=False):
        value = value + number if sign == "+" else value - number if sign == "-" else value * number
    return str(value)
