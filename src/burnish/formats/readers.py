"""Readers: from the text that a model answered to a value. None means that it cannot be read. Prose around the value is read, if it is
unambiguous, so that models that talk can be asked too."""

from __future__ import annotations

import re
from dataclasses import dataclass

OPENING = re.compile(r"^(yes|no|y|n)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Call:
    """A request to run a tool with this text."""

    text: str


def text(said: str) -> str:
    """The text itself: an answer is always readable."""
    return said


def remark(said: str) -> str | None:
    """A critique, a hint, a lesson: any text that is not empty."""
    return said or None


def yes(said: str) -> bool | None:
    """True for yes, False for no."""
    found = OPENING.match(said)
    return None if found is None else found.group(1).lower().startswith("y")


def digit(said: str) -> int | None:
    """The one digit 0 to 9 in the text."""
    found = re.findall(r"(?<![\d.])\d(?![\d.]\d|\d)", said)
    return int(found[0]) if len(found) == 1 and len(re.findall(r"\d+", said)) == 1 else None


def number(said: str) -> int | None:
    """The one whole number in the text; `ok` is 0."""
    found = re.findall(r"\d+", said)
    return 0 if said == "ok" else int(found[0]) if len(found) == 1 else None


def choice(said: str) -> int | None:
    """0 for a, 1 for b."""
    found = set(re.findall(r"\b[abAB]\b", said))
    return None if len({letter.lower() for letter in found}) != 1 else "ab".index(found.pop().lower())


def items(said: str) -> list[bool] | None:
    """One truth value per item, from a row of y and n (`yyny`) or of yes and no."""
    marks = re.findall(r"yes|no|y|n", said.lower())
    left = re.sub(r"yes|no|y|n|[\s,;.:0-9]", "", said.lower())
    return [mark.startswith("y") for mark in marks] if marks and not left else None


def call(said: str) -> Call | str | None:
    """`Call` if the model asks for the tool, else its answer as text."""
    if said.startswith("<call>"):
        return Call(said.removeprefix("<call>").strip())
    return said or None
