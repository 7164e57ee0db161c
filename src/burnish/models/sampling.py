"""Drawing: one keyed uniform per row and step, cumulative sums, finished rows leave. What was drawn is recorded here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from ..types.chance import uniform
from ..types.context import Origin, StopReason
from ..types.table import Rollouts


class Decoding(Protocol):
    """A kind's side of sampling: next-step logits of its live rows, in order."""

    def logits(self) -> Tensor:
        """(N,V) for the live rows."""

    def keep(self, rows: Tensor) -> None:
        """Only these (int (M,)) of the live rows go on, in this order."""

    def push(self, steps: Tensor) -> None:
        """Append one step (N,) to each live row."""


@dataclass(frozen=True)
class Support:
    """From what the next step is drawn. temperature 0 is greedy. top_k 0, top_p 1 and min_p 0 leave the distribution whole."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0

    @property
    def recorded(self) -> float:
        """The temperature at which log-probs are recorded: that of the draw, 1 for greedy."""
        return self.temperature or 1.0

    def allowed(self, log_p: Tensor) -> Tensor | None:
        """(N,V) bool of what may be drawn from log-probabilities (N,V); None when that is everything."""
        if not self.temperature:
            return torch.zeros_like(log_p, dtype=torch.bool).scatter_(1, log_p.argmax(1, keepdim=True), True)
        allowed = None
        if self.top_k and self.top_k < log_p.shape[1]:
            allowed = log_p >= log_p.topk(self.top_k).values[:, -1:]
        if self.top_p < 1:
            ordered, index = log_p.sort(descending=True)
            before = ordered.exp().cumsum(1) - ordered.exp()
            nucleus = torch.zeros_like(log_p, dtype=torch.bool).scatter_(1, index, before < self.top_p)
            allowed = nucleus if allowed is None else allowed & nucleus
        if self.min_p > 0:
            likely = log_p >= log_p.amax(1, keepdim=True) + torch.tensor(self.min_p).log()
            allowed = likely if allowed is None else allowed & likely
        return allowed


def choose(log_p: Tensor, chance: Tensor, support: Support) -> tuple[Tensor, Tensor]:
    """The drawn step (N,) and the probability mass of the support (N,), by inverting the cumulative distribution at chance (N,)."""
    p = log_p.double().exp()
    allowed = support.allowed(log_p)
    p = p if allowed is None else torch.where(allowed, p, 0.0)
    cumulative = p.cumsum(1)
    mass = cumulative[:, -1]
    step = torch.searchsorted(cumulative, (chance * mass)[:, None], right=True)[:, 0].clamp(max=p.shape[1] - 1)
    return step, (torch.ones_like(mass) if allowed is None else mass)


def draw(
    decoding: Decoding, table: Rollouts, keys: Tensor, support: Support, *, max_steps: int, ends: Tensor, horizon: int | None
) -> dict[str, Tensor]:
    """Up to max_steps new steps for every row of table that is not over. Returns the sampled columns, prefix included.

    `ends` are the ids after which a row is TERMINAL; `horizon` a length at which it is."""
    begin, B = table.length, len(table)
    width = int(begin.max()) + max_steps if B else 0
    new = {n: torch.zeros(B, width, dtype=torch.float64) for n in ("logp", "entropy", "kept")}
    steps, kind = torch.zeros(B, width, dtype=torch.int64), table.sampled_logp.dtype
    stop = torch.where(table.stop == StopReason.TERMINAL, int(StopReason.TERMINAL), int(StopReason.LIMIT))
    live = (table.stop != StopReason.TERMINAL).nonzero()[:, 0]
    length = begin.clone()
    if len(live) < B:
        decoding.keep(live)
    for number in range(max_steps):
        if not len(live):
            break
        log_p = (decoding.logits() / support.recorded).log_softmax(-1)
        at = length[live]
        step, kept = choose(log_p, uniform(keys[live], at), support)
        kind = log_p.dtype
        steps[live, at], new["logp"][live, at] = step, log_p.gather(1, step[:, None])[:, 0].double()
        new["entropy"][live, at], new["kept"][live, at] = torch.special.entr(log_p.exp()).sum(1).double(), kept
        length[live] += 1
        over = torch.isin(step, ends) | (length[live] == horizon if horizon is not None else torch.zeros_like(step, dtype=torch.bool))
        stop[live[over]] = int(StopReason.TERMINAL)
        going = (~over).nonzero()[:, 0]
        live = live[going]
        if len(live) and number + 1 < max_steps:
            if len(going) < len(step):
                decoding.keep(going)
            decoding.push(step[going])
    recorded = {n: x.to(kind) for n, x in new.items()} | {"steps": steps}
    return _columns(table, recorded, begin, length, keys, support) | {"stop": stop}


def _columns(table: Rollouts, new: dict[str, Tensor], begin: Tensor, length: Tensor, keys: Tensor, support: Support) -> dict[str, Tensor]:
    T = int(length.max()) if len(length) else 0
    at = torch.arange(T)
    drawn = (at >= begin[:, None]) & (at < length[:, None])

    def old(name: str, like: Tensor) -> Tensor:
        x = table.columns[name][:, :T] if name in table else like.new_zeros(len(like), 0)
        padded = torch.nn.functional.pad(x, (0, T - x.shape[1]))
        return torch.where(drawn, like[:, :T], padded.to(like.dtype))

    return {
        "steps": old("steps", new["steps"]),
        "sampled_logp": old("sampled_logp", new["logp"]),
        "sampled_entropy": old("sampled_entropy", new["entropy"]),
        "kept": old("kept", new["kept"]),
        "origin": old("origin", torch.full_like(new["steps"], int(Origin.POLICY))),
        "turn": old("turn", torch.zeros_like(new["steps"])),
        "mask": drawn,
        "key": keys,
        "temperature": torch.full((len(table),), support.recorded, dtype=torch.float64),
    }
