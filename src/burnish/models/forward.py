"""From states to what was wanted, in chunks of steps, so that no (B,T,V) tensor ever exists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from ..errors import ModelError
from ..parts import At, Over, TopK
from ..types.table import Rollouts, Scores

if TYPE_CHECKING:
    from .base import Model

LOGITS_AT_ONCE = 1 << 23  # numbers in one chunk of logits


class Distribution:
    """The next-step distributions of a table, lazy: the states (B,T,H) and the head that read them, as it was."""

    def __init__(self, head: Callable[[Tensor], Tensor], hidden: Tensor, temperature: Tensor):
        self.head, self.hidden, self.temperature = head, hidden, temperature

    def __len__(self) -> int:
        return len(self.hidden)

    def select(self, rows: Tensor) -> Distribution:
        """These rows."""
        return Distribution(self.head, self.hidden[rows], self.temperature[rows])

    @torch.no_grad()
    def at(self, rows: Tensor, times: Tensor) -> Tensor:
        """(N,V) log-probabilities before the steps (rows, times)."""
        return tempered(self.head(self.hidden[rows, times]), self.temperature[rows])


def gathered_distribution(pieces: Sequence[tuple[Tensor, Distribution]], size: int) -> Distribution:
    """Distributions of pieces of a table put back in its order."""
    first = pieces[0][1]
    hidden = first.hidden.new_zeros(size, *first.hidden.shape[1:])
    temperature = first.temperature.new_ones(size)
    for rows, piece in pieces:
        hidden[rows], temperature[rows] = piece.hidden, piece.temperature
    return Distribution(first.head, hidden, temperature)


def tempered(logits: Tensor, temperature: Tensor) -> Tensor:
    """(N,V) log-probabilities of logits (N,V) at temperature (N,)."""
    return (logits / temperature[:, None].to(logits.dtype)).log_softmax(-1)


def name_of(want: Any) -> str:
    """The name under which scores hold what was wanted."""
    if isinstance(want, At):
        return f"at_{want.column}"
    return "top_logp" if isinstance(want, TopK) else getattr(want, "name", want)


def evaluate(model: Model, batch: Rollouts, want: Sequence[Any]) -> Scores:
    """Everything in `want` for every step of the mask. Distributions exist for a chunk of steps at a time, and again in the backward."""
    unknown = [w for w in want if isinstance(w, str) and w not in model.offers]
    if unknown:
        raise ModelError(f"{type(model).__name__} cannot give {', '.join(unknown)}", expected=", ".join(sorted(model.offers)))
    hidden, scores = model.states(batch), Scores()
    rows, times = batch.mask.nonzero(as_tuple=True)
    pointwise = [w for w in want if w in ("logp", "nll", "entropy") or isinstance(w, Over | TopK | At)]
    if pointwise:
        _scatter(scores, _pointwise_chunks(model, batch, hidden, rows, times, pointwise), pointwise, batch, rows, times)
    if "value" in want:
        inside = torch.arange(hidden.shape[1]) <= batch.length[:, None]
        scores["value"] = torch.where(inside, model.values(hidden), 0.0)
    if "hidden" in want:
        scores["hidden"] = hidden
    if "distribution" in want:
        scores["distribution"] = Distribution(model.frozen_head(), hidden[:, :-1].detach(), batch.temperature)
    return scores


def _pointwise_chunks(
    model: Model, batch: Rollouts, hidden: Tensor, rows: Tensor, times: Tensor, want: Sequence[Any]
) -> list[tuple[Tensor, ...]]:
    width = model.logits(hidden[:1, 0].detach()).shape[-1]
    chunks = torch.arange(len(rows)).split(max(1, LOGITS_AT_ONCE // width)) if len(rows) else ()
    out = []
    for at in chunks:
        r, t = rows[at], times[at]
        others = [batch.columns[f"{w.to}_distribution"].at(r, t) if isinstance(w, Over) and w.to else None for w in want]
        ids = [batch.columns[w.column][r, t] if isinstance(w, At) else None for w in want]
        inputs = (model, hidden[r, t], batch.steps[r, t], batch.temperature[r], want, others, ids)
        again = len(chunks) > 1 and torch.is_grad_enabled()  # one chunk fits: keep it rather than compute it twice
        out.append(checkpoint(_pointwise, *inputs, use_reentrant=False) if again else _pointwise(*inputs))
    return out


def _pointwise(
    model: Model,
    hidden: Tensor,
    taken: Tensor,
    temperature: Tensor,
    want: Sequence[Any],
    others: Sequence[Tensor | None],
    ids: Sequence[Any],
) -> tuple[Tensor, ...]:
    p = tempered(model.logits(hidden), temperature)  # (N,V)

    def one(w: Any, q: Tensor | None, at: Tensor | None) -> tuple[Tensor, ...]:
        if isinstance(w, Over):
            return (w(p, q),)
        if isinstance(w, At):
            return (p.gather(1, at),)  # type: ignore[arg-type]
        if isinstance(w, TopK):
            return tuple(p.topk(w.k))
        if w == "entropy":
            return (-(p.exp() * p.clamp(min=-1e4)).sum(1),)
        logp = p.gather(1, taken[:, None])[:, 0]
        return (logp if w == "logp" else -logp,)

    return tuple(x for w, q, i in zip(want, others, ids, strict=True) for x in one(w, q, i))


def _scatter(scores: Scores, chunks: list[tuple[Tensor, ...]], want: Sequence[Any], batch: Rollouts, rows: Tensor, times: Tensor) -> None:
    names = [n for w in want for n in (("top_logp", "top_ids") if isinstance(w, TopK) else (name_of(w),))]
    for k, name in enumerate(names):
        if not chunks:
            scores[name] = torch.zeros(batch.steps.shape)
            continue
        x = torch.cat([c[k] for c in chunks])
        scores[name] = x.new_zeros(*batch.steps.shape, *x.shape[1:]).index_put((rows, times), x)
