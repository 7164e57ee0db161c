"""Streams of contexts: an endless seeded training stream and a fixed held-out split from a family of problems, or the rows of a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from ..errors import Refused
from ..types.context import Context
from .base import TextTask, generator, is_held_out

Style = Literal["compact", "words"]


class TextStream:
    """A family of problems as contexts. Context number i of a seed is always the same problem, so a cursor is all there is to resume."""

    def __init__(self, family: TextTask, *, level: int = 1, seed: int = 0, style: Style = "compact", max_steps: int = 0):
        if level not in family.levels:
            expected = f"{family.levels.start} to {family.levels.stop - 1}"
            raise Refused(f"{family.name} has no level {level}", expected=expected, fix="--level")
        self.family, self.level, self.seed, self.style = family, level, seed, style
        self.name, self.gives = family.name, family.gives
        self.max_steps = max_steps or family.max_steps
        self.size: int | None = None  # endless

    def contexts(self, cursor: int, n: int) -> list[Context]:
        """Training contexts number cursor .. cursor + n - 1. None of them is in the held-out split."""
        return [self._draw("train", self.seed, i) for i in range(cursor, cursor + n)]

    def held_out(self, n: int) -> list[Context]:
        """The first n of the held-out split, the same for every seed. Distinct questions, fewer where the family has no more."""
        found: dict[str, Context] = {}
        for i in range(20 * n):
            context = self._draw("held-out", 0, i)
            found.setdefault(str(context.prompt), context)
            if len(found) == n:
                break
        return list(found.values())

    def _draw(self, split: str, seed: int, index: int) -> Context:
        for attempt in range(1000):
            problem = self.family.problem(generator(self.name, self.level, split, seed, index, attempt), self.level)
            if is_held_out(problem.question) == (split == "held-out"):
                prompt = problem.question if self.style == "compact" else problem.words
                return Context(f"{self.name}.{self.level}/{split}/{seed}/{index}", prompt, {**problem.meta, "question": problem.question})
        raise Refused(f"{self.name} level {self.level} has too few questions for a {split} split")

    def check(self, text: str, context: Context) -> float:
        """The truth about an answer, in [0, 1]."""
        return self.family.check(text, context.meta)

    def details(self, kind: str, text: str, context: Context) -> Sequence[bool]:
        """One truth per rule ("items") or unit test ("tests")."""
        said: Sequence[bool] = getattr(self.family, kind)(text, context.meta)
        return said


class Rows:
    """Contexts from the rows of a file: `prompt`, perhaps `completion`, and anything else, which becomes meta.

    Each epoch is a fresh keyed order; every row comes once per epoch. One row in `held_out_every` is kept for evaluation."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], *, name: str, seed: int = 0, max_steps: int = 64, held_out_every: int = 8):
        if not rows:
            raise Refused("there are no rows", where=name)
        self.name, self.seed, self.max_steps = name, seed, max_steps
        made = [Context(f"{name}/{i}", row["prompt"], {k: v for k, v in row.items() if k != "prompt"}) for i, row in enumerate(rows)]
        aside = range(held_out_every - 1, len(made), held_out_every) if len(made) >= held_out_every else range(0)
        self.kept = [c for i, c in enumerate(made) if i in aside]
        self.rows = [c for i, c in enumerate(made) if i not in aside]
        demonstrated = all("completion" in row for row in rows)
        self.gives = frozenset({"demonstration"} if demonstrated else ())
        self.size: int | None = len(self.rows)

    def contexts(self, cursor: int, n: int) -> list[Context]:
        """Training contexts number cursor .. cursor + n - 1, across epochs."""
        return [self.rows[row] for row in self._order(cursor, n)]

    def _order(self, cursor: int, n: int) -> Iterator[int]:
        size = len(self.rows)
        orders: dict[int, list[int]] = {}
        for i in range(cursor, cursor + n):
            epoch, place = divmod(i, size)
            if epoch not in orders:
                orders[epoch] = list(range(size))
                generator(self.name, "order", self.seed, epoch).shuffle(orders[epoch])
            yield orders[epoch][place]

    def held_out(self, n: int) -> list[Context]:
        """The rows kept for evaluation, at most n; all rows where none could be kept."""
        return (self.kept or self.rows)[:n]
