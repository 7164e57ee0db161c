"""What a language model is asked in a role: how the request is laid out, what it may see, what it makes and how its answer is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any

Reader = Callable[[str], Any]


@dataclass(frozen=True)
class Format:
    """One format of the compact grammar.

    `layout` has the places that `render` fills: `{question}` and the names of parts. `sees` are the parts without which nothing can be
    rendered (the question apart); a place that is not in `sees` may stay empty. `makes` says what comes out. `reader` turns the model's
    text into a value. `words` is the same request in English for other language models, where there is one."""

    name: str
    makes: str
    layout: str
    reader: Reader
    sees: tuple[str, ...] = ()
    words: str | None = None

    def render(self, question: str, parts: Mapping[str, Any] | None = None) -> str:
        """The prompt in the compact grammar. Raises KeyError naming the part that is missing."""
        return self._fill(self.layout, question, parts or {})

    def ask(self, question: str, parts: Mapping[str, Any] | None = None) -> str:
        """The prompt in English, for any other language model. Raises ValueError if this format has no English template."""
        if self.words is None:
            raise ValueError(f"format {self.name!r} has no English template; use a model that knows the compact grammar")
        return self._fill(self.words, question, parts or {})

    def read(self, text: str) -> Any:
        """What the model said, as a value; None if it cannot be read (the model abstains)."""
        return self.reader(text.split("<end>")[0].strip())

    def _fill(self, layout: str, question: str, parts: Mapping[str, Any]) -> str:
        missing = [name for name in self.sees if name not in parts]
        if missing:
            raise KeyError(f"format {self.name!r} needs the parts {', '.join(self.sees)}; missing: {', '.join(missing)}")
        places = [place for _, place, _, _ in Formatter().parse(layout) if place and place != "question"]
        return layout.format(question=question, **{place: parts.get(place, "") for place in places})
