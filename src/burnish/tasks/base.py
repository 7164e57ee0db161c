"""Tasks: where contexts come from and how answers are checked. No torch here: a task is asked about before anything heavy is loaded."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar


@dataclass(frozen=True)
class Problem:
    """One drawn problem.

    `question` is in the compact grammar of the embedded models (`add49+97`), `words` says the same in English for any other language
    model; `meta` holds `answer` (a reference answer, where there is one) and whatever `check` needs."""

    question: str
    words: str
    meta: Mapping[str, Any] = field(default_factory=dict)


def generator(*key: object) -> random.Random:
    """A private generator for this key: the same key is the same stream, on every machine and in every process."""
    text = "\x1f".join(map(str, key)).encode()
    return random.Random(int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "big"))


HELD_OUT_SHARE = 8


def is_held_out(question: str) -> bool:
    """One question in eight belongs to the held-out split, decided by the question alone: no training stream can contain it."""
    return hashlib.blake2b(question.encode(), digest_size=8).digest()[0] % HELD_OUT_SHARE == 0


class TextTask:
    """A family of text problems with a true check. A subclass says `problem` and `check`; streams and splits are made from these."""

    name: ClassVar[str]
    levels: ClassVar[range] = range(1, 4)  # the difficulty knob
    max_steps: ClassVar[int] = 16  # tokens an answer may take in the compact grammar
    gives: ClassVar[frozenset[str]] = frozenset({"reward", "demonstration"})

    def problem(self, rng: random.Random, level: int) -> Problem:
        """Draw a problem of this level from this private generator."""
        raise NotImplementedError

    def check(self, text: str, meta: Mapping[str, Any]) -> float:
        """The truth about an answer, in [0, 1]; 1 is right. Any text gets a number: a check never raises on an answer."""
        raise NotImplementedError
