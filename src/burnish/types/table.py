"""The growing table. Letters: B rows, T steps, K items, P pairs, N groups, H hidden size, V symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import torch
from torch import Tensor

from ..errors import TableError
from .context import SAMPLED, Context, Origin, StopReason, digest

# What a part returns, read from its annotation: one value per step (B,T), row (B,), pair (P,) or group (N,).
Steps: TypeAlias = Tensor
Rows: TypeAlias = Tensor
Pairs: TypeAlias = Tensor
Groups: TypeAlias = Tensor

WRITTEN_ONCE = frozenset({"steps", "origin", "sampled_logp", "kept", "key"})
ABSENT = {"steps": 0, "origin": int(Origin.PADDING), "weight": 1.0}  # what concat writes where one side has no such column


class Scores(dict[str, Any]):
    """Outputs of a forward by name: logp, entropy and divergences (B,T), value (B,T+1), hidden (B,T+1,H), distributions (lazy)."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"this forward was not asked for {name!r}; it has {', '.join(sorted(self)) or 'nothing'}") from None


@dataclass(frozen=True)
class Term:
    """One named piece of a loss.

    `value` is unreduced: (B,T), (B,), (P,) or (N,). It is divided once, by the sum of the column `on` over the whole optimizer step
    ("pairs" and "group" count those). `weight` enters the gradient, not the metric. `reduce` replaces the method's reduction."""

    value: Tensor
    on: str = "mask"
    reduce: str | tuple[str, float] | None = None
    weight: float = 1.0


@dataclass(frozen=True)
class Feedback:
    """What judges said.

    `columns` are one value per row or step (reward, step_reward, label, rank, cost) and move to the table; NaN means nobody said.
    `items` are (B,K) (tests, rubric items), NaN beyond a row's own. `pairs` (P,2) are row numbers, first preferred, with
    `probability` (P,). `critique` is a text or None per row. `said_by` names who said each column."""

    columns: Mapping[str, Tensor] = field(default_factory=dict)
    items: Mapping[str, Tensor] = field(default_factory=dict)
    pairs: Tensor = field(default_factory=lambda: torch.zeros(0, 2, dtype=torch.int64))
    probability: Tensor = field(default_factory=lambda: torch.ones(0, dtype=torch.float64))
    critique: Sequence[str | None] = ()
    said_by: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not len(self.probability):  # nobody doubted: each pair is certain
            object.__setattr__(self, "probability", torch.ones(len(self.pairs), dtype=torch.float64))

    def select(self, rows: Tensor, size: int) -> Feedback:
        """What was said of these rows; a pair stays when both its rows stay."""
        place = torch.full((size,), -1).index_put((rows,), torch.arange(len(rows)))
        pairs = place[self.pairs]
        whole = (pairs >= 0).all(1)
        return replace(
            self,
            columns={n: x[rows] for n, x in self.columns.items()},
            items={n: x[rows] for n, x in self.items.items()},
            pairs=pairs[whole],
            probability=self.probability[whole],
            critique=[self.critique[i] for i in rows.tolist()] if self.critique else (),
        )

    def concat(self, other: Feedback, mine: int, theirs: int) -> Feedback:
        """Both; items that one side lacks are NaN there."""
        critique = [*(self.critique or [None] * mine), *(other.critique or [None] * theirs)] if self.critique or other.critique else ()
        items = {n: _items(self.items.get(n), other.items.get(n), mine, theirs) for n in {**self.items, **other.items}}
        return Feedback(
            items=items,
            pairs=torch.cat([self.pairs, other.pairs + mine]),
            probability=torch.cat([self.probability, other.probability]),
            critique=critique,
            said_by={**other.said_by, **self.said_by},
        )


def _items(mine: Tensor | None, other: Tensor | None, rows: int, others: int) -> Tensor:
    width = max(x.shape[1] for x in (mine, other) if x is not None)
    sides = [(x if x is not None else torch.full((n, 0), torch.nan, dtype=torch.float64)) for x, n in ((mine, rows), (other, others))]
    return torch.cat([torch.nn.functional.pad(x, (0, width - x.shape[1]), value=torch.nan) for x in sides])


class Rollouts:
    """B rows; one row is one piece of one episode. Every operation returns a new table.

    Columns are tensors (B,), (B,T,...) or (B,T+1,...), or one object per row (texts, observations); they are read as attributes:
    `batch.reward`. Items per row (B,K) live in `feedback`."""

    def __init__(
        self,
        contexts: Sequence[Context],
        columns: Mapping[str, Any],
        *,
        sampled_under: Sequence[Context] | None = None,
        feedback: Feedback | None = None,
        scored: frozenset[str] = frozenset(),
    ):
        self.contexts, self.columns = list(contexts), dict(columns)
        self.sampled_under = list(contexts if sampled_under is None else sampled_under)
        self.feedback = feedback or Feedback()
        self.scored = scored  # columns that hold for the present contexts only: under() drops them

    def __len__(self) -> int:
        return len(self.contexts)

    def __contains__(self, name: str) -> bool:
        return name in self.columns or (name in ("pairs", "probability") and len(self.feedback.pairs) > 0)

    def __getattr__(self, name: str) -> Any:
        columns = self.__dict__.get("columns", {})
        if name in columns:
            return columns[name]
        if name in ("pairs", "probability") and "feedback" in self.__dict__:
            return getattr(self.feedback, name)
        raise AttributeError(f"the table has no column {name!r}; it has {', '.join(sorted(columns))}")

    @property
    def length(self) -> Tensor:
        """(B,) steps in each row, prompts not counted."""
        return (self.origin != Origin.PADDING).sum(1)

    def said(self, name: str) -> Tensor:
        """(B,) or (B,T) bool: where somebody said something in this column. Abstaining is NaN; 0.0 is a score."""
        column: Tensor = self.columns[name]
        return ~column.isnan()

    def replaced(self, columns: Mapping[str, Any], **changes: Any) -> Rollouts:
        """The same rows with exactly these columns."""
        kept = {"sampled_under": self.sampled_under, "feedback": self.feedback, "scored": self.scored, **changes}
        return Rollouts(kept.pop("contexts", self.contexts), columns, **kept)

    def attach(self, *, feedback: Feedback | None = None, scored: bool = False, **columns: Any) -> Rollouts:
        """More columns. The mask only narrows; what was drawn is never written again.

        `scored` marks columns that hold only behind the present contexts. Raises TableError for a wrong shape or a forbidden column."""
        for name, value in columns.items():
            self._check(name, value)
        return self.replaced(
            {**self.columns, **columns}, feedback=feedback or self.feedback, scored=self.scored | set(columns if scored else ())
        )

    def _check(self, name: str, value: Any) -> None:
        T, rows = self.steps.shape[1], 0 if isinstance(value, Tensor) and not value.ndim else len(value)
        if rows != len(self):
            raise TableError(f"{name} has {rows} rows, the table has {len(self)}", where="attach")
        if isinstance(value, Tensor) and value.ndim > 1 and value.shape[1] not in (T, T + 1):
            shapes = f"(B,), (B,{T},...) or (B,{T + 1},...)"
            raise TableError(
                f"{name} is no column",
                where="attach",
                seen=tuple(value.shape),
                expected=shapes,
                fix="items per row belong to feedback.items",
            )
        if name in WRITTEN_ONCE:
            raise TableError(f"{name} is written once, when drawn", where="attach")
        if name == "mask" and (value.dtype != torch.bool or value.shape != self.mask.shape):
            raise TableError(
                "a mask is bool, one per step", where="attach", seen=(value.dtype, tuple(value.shape)), expected=tuple(self.mask.shape)
            )
        if name == "mask" and bool((value & ~self.mask).any()):
            raise TableError("a mask only narrows", where="attach", fix="steps that were not drawn here are never trained on")

    def hear(self, feedback: Feedback) -> Rollouts:
        """Attach what judges said: its columns to the table, the rest beside it. Raises TableError for items or pairs of other rows."""
        for name, said in {**feedback.items, **({"critique": feedback.critique} if feedback.critique else {})}.items():
            if len(said) != len(self):
                raise TableError(f"{name} has {len(said)} rows, the table has {len(self)}", where="hear")
        if bool(((feedback.pairs < 0) | (feedback.pairs >= len(self))).any()):
            raise TableError(
                "a pair names a row that is not there", where="hear", seen=feedback.pairs.tolist(), expected=f"0 to {len(self) - 1}"
            )
        rest = replace(
            feedback, columns={}, items={**self.feedback.items, **feedback.items}, said_by={**self.feedback.said_by, **feedback.said_by}
        )
        if not len(feedback.pairs):
            rest = replace(rest, pairs=self.feedback.pairs, probability=self.feedback.probability)
        columns: dict[str, Any] = dict(feedback.columns)
        return self.attach(feedback=replace(rest, critique=feedback.critique or self.feedback.critique), **columns)

    def only(self, keep: Tensor) -> Rollouts:
        """Narrow the mask by keep (B,T) or (B,) bool."""
        return self.attach(mask=self.mask & (keep if keep.ndim == 2 else keep[:, None]))

    def select(self, rows: Tensor) -> Rollouts:
        """These rows, in this order: int (N,) or bool (B,)."""
        rows = rows.nonzero()[:, 0] if rows.dtype == torch.bool else rows
        return self.replaced(
            {name: _take(x, rows) for name, x in self.columns.items()},
            contexts=_take(self.contexts, rows),
            sampled_under=_take(self.sampled_under, rows),
            feedback=self.feedback.select(rows, len(self)),
        )

    def concat(self, other: Rollouts) -> Rollouts:
        """More rows. A column that one side lacks is NaN, False, -1 or None there; steps beyond a row's end are 0."""
        T = max(self.steps.shape[1], other.steps.shape[1])
        columns = {name: _join(_side(name, self, other, T), _side(name, other, self, T)) for name in {**self.columns, **other.columns}}
        feedback = self.feedback.concat(other.feedback, len(self), len(other))
        under = self.sampled_under + other.sampled_under
        return Rollouts(self.contexts + other.contexts, columns, sampled_under=under, feedback=feedback, scored=self.scored | other.scored)

    def swap(self, rows: Tensor, others: Rollouts) -> Rollouts:
        """The table with `others` in the place of `rows` (N,)."""
        if len(others) != len(rows):
            raise TableError(f"{len(others)} rows cannot stand in the place of {len(rows)}", where="swap")
        index = torch.arange(len(self)).index_put((rows,), len(self) + torch.arange(len(others)))
        return self.concat(others).select(index)

    def under(self, contexts: Sequence[Context]) -> Rollouts:
        """The same steps behind other contexts. What was drawn stays as drawn; what was scored behind the old ones goes."""
        if len(contexts) != len(self):
            raise TableError(f"{len(contexts)} contexts for {len(self)} rows", where="under")
        return self.replaced({n: x for n, x in self.columns.items() if n not in self.scored}, contexts=list(contexts), scored=frozenset())

    def prefix(self, length: Tensor) -> Rollouts:
        """The first `length` (B,) steps, to be continued: only what was drawn survives, nothing that was said of the whole row."""
        inside = torch.arange(self.steps.shape[1]) < length[:, None]
        columns = {name: self.columns[name] for name in SAMPLED if name in self.columns}
        columns["origin"] = torch.where(inside, self.origin, int(Origin.PADDING))
        columns["mask"], columns["steps"] = self.mask & inside, torch.where(inside, self.steps, 0)
        for name in {"turn", "sampled_logp", "sampled_entropy", "kept"} & columns.keys():
            columns[name] = torch.where(inside, columns[name], 0)  # beyond a row's end nothing is known
        columns["stop"] = torch.where(length < self.length, int(StopReason.CUT), self.stop)
        return self.replaced(columns, feedback=Feedback(), scored=frozenset())

    def best(self, score: Tensor) -> Rollouts:
        """The best row of each group by score (B,), the first on ties; rows that nobody scored do not compete."""
        return self.select(best_of_each(score, self.group))


def best_of_each(score: Tensor, group: Tensor) -> Tensor:
    """(N,) the row with the highest score in each group, the first on ties, in order of first appearance.

    NaN does not compete: a group that nobody scored has no best. Rows outside every group (-1) stand alone."""
    best: dict[Any, int] = {}
    said = score.tolist()
    for row, g in enumerate(group.tolist()):
        name = g if g >= 0 else ("alone", row)
        if said[row] == said[row] and (name not in best or said[row] > said[best[name]]):
            best[name] = row
    return torch.tensor(list(best.values()), dtype=torch.int64)


def _take(x: Any, rows: Tensor) -> Any:
    if isinstance(x, Tensor):
        return x[rows]
    return x.select(rows) if hasattr(x, "select") else [x[i] for i in rows.tolist()]


def _join(mine: Any, other: Any) -> Any:
    return torch.cat([mine, other]) if isinstance(mine, Tensor) else [*mine, *other]


def _side(name: str, mine: Rollouts, other: Rollouts, T: int) -> Any:
    """One side of a concat: the column padded along the steps, or a hole in the form of the other side's."""
    owner = mine if name in mine.columns else other
    like = owner.columns[name]
    if not isinstance(like, Tensor):
        return like if owner is mine else [None] * len(mine)
    size = (len(mine), T + like.shape[1] - owner.steps.shape[1], *like.shape[2:]) if like.ndim > 1 else (len(mine),)
    if owner is other:
        hole = torch.nan if like.is_floating_point() else False if like.dtype == torch.bool else -1
        return like.new_full(size, ABSENT.get(name, hole))
    return like if like.shape == size else torch.cat([like, like.new_zeros(size[0], size[1] - like.shape[1], *size[2:])], 1)


def blank(contexts: Sequence[Context]) -> Rollouts:
    """Rows of no steps: what `sample` continues when it is given contexts. Group and key come from the id, so tables can be joined."""
    B, ids = len(contexts), torch.tensor([digest(c.id) for c in contexts], dtype=torch.int64)

    def none(kind: torch.dtype) -> Tensor:
        return torch.zeros(B, 0, dtype=kind)

    return Rollouts(
        contexts,
        {
            **{name: none(torch.int64) for name in ("steps", "origin", "turn")},
            **{name: none(torch.float32) for name in ("sampled_logp", "kept")},
            "mask": none(torch.bool),
            "temperature": torch.ones(B, dtype=torch.float64),
            "weight": torch.ones(B, dtype=torch.float64),
            "version": torch.full((B,), -1),
            "key": ids,
            "group": ids,
            "stop": torch.full((B,), int(StopReason.CUT)),
        },
    )
