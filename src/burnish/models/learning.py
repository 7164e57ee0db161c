"""From a loss over outputs to a gradient: terms, their counts, units that may not be cut, micro-batches. Knows no network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ..errors import TableError
from ..types.table import Rollouts, Scores, Term

Loss = Callable[[Scores, Rollouts], Mapping[str, Tensor | Term]]
Reduction = str | tuple[str, float]
REDUCTIONS = ("token_mean", "sequence_mean", "sequence_sum", "constant")


class Gradient(dict[str, Tensor]):
    """Parameter name -> gradient. `report` is the raw value of each term, `scores` the outputs (detached) it was taken at."""

    report: dict[str, float]
    scores: Scores

    def __init__(self, values: Mapping[str, Tensor], report: dict[str, float] | None = None, scores: Scores | None = None):
        super().__init__(values)
        self.report, self.scores = report or {}, scores or Scores()

    def __add__(self, other: Gradient) -> Gradient:
        return Gradient({n: g + other[n] for n, g in self.items()})

    def __sub__(self, other: Gradient) -> Gradient:
        return Gradient({n: g - other[n] for n, g in self.items()})

    def __mul__(self, scale: float) -> Gradient:
        return Gradient({n: g * scale for n, g in self.items()})

    def dot(self, other: Gradient) -> float:
        return float(sum((g.double() * other[n].double()).sum() for n, g in self.items()))

    def norm(self) -> float:
        return self.dot(self) ** 0.5

    def cosine(self, other: Gradient) -> float:
        return self.dot(other) / (self.norm() * other.norm())


def units_of(batch: Rollouts, unit: str) -> list[Tensor]:
    """What a loss may not be cut through, as row numbers: row, pair, group, batch.

    Rows of one context come together, so that their prompt is computed once. A pair brings every row that a chain of pairs ties to it."""
    if unit == "batch":
        return [torch.arange(len(batch))]
    label = torch.arange(len(batch))
    if unit == "group":
        label = torch.where(batch.group < 0, -1 - label, batch.group)
    if unit == "pair":
        for a, b in batch.feedback.pairs.tolist():
            label = torch.where(label == label[b], label[a], label)
    first: dict[str, int] = {}
    for row, context in enumerate(batch.contexts):
        first.setdefault(context.id, row)
    units: dict[int, list[int]] = {}
    for row in sorted(range(len(batch)), key=lambda r: (first[batch.contexts[r].id], r)):
        units.setdefault(int(label[row]), []).append(row)
    return [torch.tensor(rows) for rows in units.values()]


def packed(units: Sequence[Tensor], cost: Tensor, limit: int) -> list[Tensor]:
    """Whole units put together while their summed cost (B,) stays within limit; a larger unit stands alone."""
    pieces: list[list[int]] = [[]]
    filled = 0
    for rows in units:
        size = int(cost[rows].sum())
        if pieces[-1] and filled + size > limit:
            pieces.append([])
            filled = 0
        pieces[-1] += rows.tolist()
        filled += size
    return [torch.tensor(rows) for rows in pieces if rows]


def differentiate(
    loss: Loss, scores: Scores, part: Rollouts, whole: Rollouts, reduction: Reduction
) -> tuple[dict[str, Tensor], dict[str, float]]:
    """d (sum of weighted terms) / d outputs, the outputs cut off from the network, and the raw value of each term."""
    leaves = Scores({n: x.detach().requires_grad_() if isinstance(x, Tensor) and x.is_floating_point() else x for n, x in scores.items()})
    terms = {n: t if isinstance(t, Term) else Term(t) for n, t in loss(leaves, part).items()}
    values = {n: reduced(t, part, whole, t.reduce or reduction) for n, t in terms.items()}
    total = sum((terms[n].weight * x for n, x in values.items()), torch.zeros(()))
    learnt = {n: x for n, x in leaves.items() if isinstance(x, Tensor) and x.requires_grad}
    grads = torch.autograd.grad(total, list(learnt.values()), allow_unused=True) if total.requires_grad else [None] * len(learnt)
    back = {n: g for n, g in zip(learnt, grads, strict=True) if g is not None}
    return back, {n: float(x.detach()) for n, x in values.items()}


def reduced(term: Term, part: Rollouts, whole: Rollouts, how: Reduction) -> Tensor:
    """The term's sum over part, divided by its own count over whole (the optimizer step). Counts come from columns: no forward."""
    if term.on == "pairs":
        return term.value.sum() / max(len(whole.feedback.pairs), 1)
    if term.on == "group":
        return term.value.sum() / max(len(whole.group[whole.group >= 0].unique()), 1)
    (on, rows), (all_on, all_rows) = _weights(part, term.on), _weights(whole, term.on)
    count = all_rows.sum().clamp(min=1e-30)
    if term.value.ndim == 1:
        return torch.where(rows > 0, term.value.double(), 0.0) @ rows / count
    by_row = (torch.where(on != 0, term.value, 0.0) * on).sum(1)
    name, length = how if isinstance(how, tuple) else (how, 1.0)
    if name == "token_mean":
        return by_row @ part.weight / (all_on.sum(1) @ whole.weight).clamp(min=1e-30)
    if name == "sequence_mean":
        return (by_row / on.sum(1).clamp(min=1e-30)) @ rows / count
    if name in ("sequence_sum", "constant"):
        return by_row @ rows / count / length
    raise TableError(f"there is no reduction {how!r}", expected=", ".join(REDUCTIONS))


def _weights(batch: Rollouts, name: str) -> tuple[Tensor, Tensor]:
    """The column that a term lives on, per step (B,T) and per row (B,)."""
    on = batch.columns[name].double()
    on = on if on.ndim == 2 else on[:, None] * batch.mask
    return on, (on != 0).any(1) * batch.weight


def gathered(pieces: Sequence[tuple[Tensor, Scores]], size: int) -> Scores:
    """Outputs of pieces of a table put back in its order; every tensor (B,...), detached."""
    whole = Scores()
    for rows, scores in pieces:
        for name, x in scores.items():
            if isinstance(x, Tensor):
                whole.setdefault(name, x.new_zeros(size, *_widest(pieces, name)))[rows, *(slice(0, n) for n in x.shape[1:])] = x.detach()
    return whole


def _widest(pieces: Sequence[tuple[Tensor, Scores]], name: str) -> list[int]:
    shapes: list[Any] = [s[name].shape[1:] for _, s in pieces if name in s]
    return [max(sizes) for sizes in zip(*shapes, strict=True)]
