"""The nouns that need no tensors."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any


class StopReason(IntEnum):
    """Why a row ended. Only TERMINAL ends the bootstrap."""

    TERMINAL = 0  # the episode is over: what follows is worth 0
    LIMIT = 1  # tokens or time ran out: bootstrap
    CUT = 2  # goes on in another row: bootstrap
    FAILED = 3  # excluded from statistics and loss, counted


class Origin(IntEnum):
    """Who wrote a step."""

    PADDING = 0
    ENVIRONMENT = 1  # tools, users, results
    POLICY = 2
    PEER = 3
    TEACHER = 4
    DEMONSTRATION = 5


# What a draw writes, a column each.
SAMPLED = (
    "steps",
    "origin",
    "mask",
    "turn",
    "sampled_logp",
    "sampled_entropy",
    "kept",
    "temperature",
    "version",
    "key",
    "group",
    "weight",
    "stop",
)


class Rendered(str):
    """A prompt that is already in the model's own form: read as it stands, no chat template around it."""


Prompt = str | Sequence[Mapping[str, str]] | Any  # text, chat messages, or what a kind reads (an observation, an index)


@dataclass(frozen=True)
class Context:
    """One thing to respond to. Two contexts are the same only if their `id` is.

    `prompt` is text, chat messages, an observation or an index; `meta` holds what judges may look up (reference answer, tests, rubric);
    `parts` what earlier stages made (draft, critique, hint); `shown` examples or records in view; `source` the context it was made from."""

    id: str
    prompt: Prompt = field(compare=False)
    meta: Mapping[str, Any] = field(default_factory=dict, compare=False)
    parts: Mapping[str, Any] = field(default_factory=dict, compare=False)
    shown: Sequence[Any] = field(default=(), compare=False)
    user: str | None = field(default=None, compare=False)
    source: Context | None = field(default=None, compare=False, repr=False)

    @property
    def root(self) -> Context:
        """The task's own context; truth is always read there."""
        return self.source.root if self.source else self

    def about(self, format: str, prompt: Prompt, **parts: Any) -> Context:
        """The same matter in another form: the id names the root, the form and what is shown."""
        made = f"{self.root.id}|{format}:{digest(repr(prompt))}"
        return replace(self, id=made, prompt=prompt, parts={**self.parts, **parts}, source=self)


def digest(text: str) -> int:
    """A stable non-negative 63-bit number for a text."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1
