"""The truth about an answer in every form a judge can say it: what a perfect critic, grader or user of these tasks would answer.

`text` is an answer, `meta` a problem's meta. Places, rules and tests are counted from 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burnish.tasks.registry import PARTS
from burnish.tasks.rules import Rules
from burnish.tasks.stack import Stack

Meta = Mapping[str, Any]


def right(text: str, meta: Meta) -> bool:
    """Is the answer fully right?"""
    return PARTS[meta["task"]].check(text, meta) == 1.0


def items(text: str, meta: Meta) -> list[bool]:
    """Per item, is it met? The items are the rules, the shown tests, or the places of the answer that was given."""
    task = PARTS[meta["task"]]
    if isinstance(task, Rules):
        return task.items(text, meta)
    if isinstance(task, Stack):
        return task.tests(text, meta)[: meta["shown"]]
    answer = meta["answer"]
    return [place < len(answer) and answer[place] == letter for place, letter in enumerate(text.strip())]


def by_item(meta: Meta) -> bool:
    """Do errors have the number of an item (rules, tests) and not a place?"""
    return meta["task"] in ("rules", "stack")


def first_error(text: str, meta: Meta) -> int:
    """The number of the first item that is not met or of the first place that is wrong or missing; 0 if there is none."""
    met = items(text, meta)
    if False in met:
        return met.index(False) + 1
    return 0 if by_item(meta) or len(met) == len(meta["answer"]) else len(met) + 1


def critique(text: str, meta: Meta) -> str:
    """`ok`; `#2`: item 2 is not met; `len<`: the answer is too long; `len>`: too short; `@2>`: the character at place 2 is wrong, the
    right one is larger."""
    place = first_error(text, meta)
    if not place:
        return "ok" if right(text, meta) else "no"  # "no": every test that is shown passes and a hidden one fails
    if by_item(meta):
        return f"#{place}"
    text, answer = text.strip(), meta["answer"]
    if len(text) != len(answer):
        return "len<" if len(text) > len(answer) else "len>"
    return f"@{place}{'>' if answer[place - 1] > text[place - 1] else '<'}"


def score(text: str, meta: Meta) -> int:
    """9 if right, else nine times the share of items or places that are right, rounded, and at most 8."""
    if right(text, meta):
        return 9
    met = items(text, meta)
    size = len(met) if by_item(meta) else max(len(met), len(meta["answer"]))
    return min(8, round(9 * sum(met) / size))


def reflection(text: str, meta: Meta) -> str:
    """What to remember for the next attempt, in the form of a hint: `@2b`: the character at place 2 is b; `#2`: mind item 2; `ok`."""
    place = first_error(text, meta)
    if by_item(meta) or not place:
        return critique(text, meta)
    answer = meta["answer"]
    return f"@{place}{answer[place - 1]}" if place <= len(answer) else "len<"


def user(text: str, meta: Meta) -> str:
    """What a patient user who knows the answer says next: `ok`, or `no` and the critique."""
    said = critique(text, meta)
    return said if said in ("ok", "no") else f"no{said}"
