"""The tree lab's policy: one row of logits and one value per (context, prefix). The parameters are the mathematics itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from ..types.context import Context, Origin
from ..types.table import Rollouts
from .base import Model
from .options import Learner


class Tabular(Model):
    """Strings of at most `horizon` symbols; a context's prompt is its number. float64, so that identities hold to 1e-12.

    seed None starts uniform with values 0; otherwise logits and values are normal draws of this seed."""

    def __init__(
        self, contexts: int, symbols: int, horizon: int, *, end: int | None = None, seed: int | None = None, learner: Learner | None = None
    ):
        super().__init__(learner)
        self.nodes, self.symbols, self.horizon = sum(symbols**d for d in range(horizon + 1)), symbols, horizon
        self.ends = () if end is None else (end,)
        private = torch.Generator().manual_seed(seed or 0)

        def start(*size: int) -> Tensor:
            return torch.zeros(*size).double() if seed is None else torch.randn(*size, generator=private).double()

        self.table = nn.Parameter(start(contexts * self.nodes, symbols))
        self.worth = nn.Parameter(start(contexts * self.nodes))

    def states(self, batch: Rollouts) -> Tensor:
        node = [torch.zeros(len(batch), dtype=torch.int64)]
        for step in batch.steps.T:
            node.append((node[-1] * self.symbols + step + 1).clamp(max=self.nodes - 1))  # beyond a row's end nothing is read
        root = torch.tensor([c.prompt * self.nodes for c in batch.contexts], dtype=torch.int64)
        return (torch.stack(node, 1) + root[:, None])[..., None]

    def logits(self, hidden: Tensor) -> Tensor:
        return self.table[hidden[..., 0]]

    def values(self, hidden: Tensor) -> Tensor:
        return self.worth[hidden[..., 0]]

    def frozen_head(self) -> Callable[[Tensor], Tensor]:
        table = self.table.detach().clone()
        return lambda hidden: table[hidden[..., 0]]

    def decode(self, table: Rollouts) -> _Walk:
        return _Walk(self, self.states(table)[torch.arange(len(table)), table.length, 0])

    def read(self, answer: str) -> list[int]:
        return [int(s) for s in answer.split()]

    def strings(self) -> list[tuple[int, ...]]:
        """Every string that can be drawn."""
        found: set[tuple[int, ...]] = {()}
        for _ in range(self.horizon or 0):
            found |= {(*s, v) for s in found if not s or s[-1] not in self.ends for v in range(self.symbols)}
        return sorted(s for s in found if len(s) == self.horizon or (s and s[-1] in self.ends))

    def enumerate(self, contexts: Sequence[Context]) -> Rollouts:
        """Every string of every context, as if drawn, with its exact probability as `weight`. Sums over the table are expectations."""
        strings = self.strings()
        table = self.encode([c for c in contexts for _ in strings], strings * len(contexts))
        logp = self.score(table).logp
        drawn = {
            "origin": torch.where(table.mask, int(Origin.POLICY), table.origin),
            "sampled_logp": logp,
            "sampled_entropy": self.score(table, ("entropy",)).entropy,
            "kept": torch.where(table.mask, 1.0, 0.0),
            "weight": logp.sum(1).exp(),
            "version": torch.full((len(table),), self.version),
        }
        return Rollouts(table.contexts, table.columns | drawn)


class _Walk:
    """Decoding on the tree: the node where each live row stands."""

    def __init__(self, model: Tabular, node: Tensor):
        self.model, self.node = model, node

    def logits(self) -> Tensor:
        return self.model.table[self.node]

    def keep(self, rows: Tensor) -> None:
        self.node = self.node[rows]

    def push(self, steps: Tensor) -> None:
        inside = self.node % self.model.nodes
        self.node = self.node - inside + inside * self.model.symbols + steps + 1
