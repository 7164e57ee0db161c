"""Batched decoding of a causal language model: every prompt prefilled once, a cache of keys and values, finished rows leave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache

if TYPE_CHECKING:
    from .causal_lm import CausalLM


class KeysAndValues(Cache):  # type: ignore[misc]
    """Keys and values of every layer, (N, heads, columns, size), written in place; room is doubled when it runs out."""

    def __init__(self) -> None:
        self.layers: list[Any] = []  # what transformers looks into; the columns are ours
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []
        self.filled = 0  # columns written by whole forwards

    def update(self, key: Tensor, value: Tensor, layer_idx: int, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Write the new columns of one layer; all of its columns come back."""
        end = self.filled + key.shape[2]
        if layer_idx == len(self.keys):
            self.keys.append(key)
            self.values.append(value)
        else:
            for held, new in ((self.keys, key), (self.values, value)):
                if held[layer_idx].shape[2] < end:
                    held[layer_idx] = torch.nn.functional.pad(held[layer_idx], (0, 0, 0, max(end, 16)))
                held[layer_idx][:, :, self.filled : end] = new
        return self.keys[layer_idx][:, :, :end], self.values[layer_idx][:, :, :end]

    def rows(self, index: Tensor) -> None:
        """Keep these rows, in this order; a row may be taken several times."""
        self.keys, self.values = [k[index] for k in self.keys], [v[index] for v in self.values]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self.filled

    @property
    def is_initialized(self) -> bool:
        return bool(self.keys)


class Decoder:
    """The rows of one table, decoded in step. Columns: prompts padded on the right to a common width, then one column per new step."""

    def __init__(self, model: CausalLM, starts: Sequence[tuple[int, ...]]):
        self.model, self.cache = model, KeysAndValues()
        unique = list(dict.fromkeys(starts))
        number = {ids: n for n, ids in enumerate(unique)}
        rows = torch.tensor([number[ids] for ids in starts], dtype=torch.int64)
        hidden, size = self._prefill(unique)
        self.cache.rows(rows)
        self.hidden, self.length = hidden[rows], size[rows]
        self.seen = torch.arange(int(size.max())) < self.length[:, None]  # (N, columns): what a new step may look at

    def _prefill(self, unique: list[tuple[int, ...]]) -> tuple[Tensor, Tensor]:
        """Hidden state (U,H) at the end of each distinct prompt, and their lengths (U,)."""
        size = torch.tensor([len(ids) for ids in unique])
        width = int(size.max())
        ids = torch.tensor([[*u, *[0] * (width - len(u))] for u in unique])
        at = torch.arange(width)
        seen = (at <= at[:, None]) & (at < size[:, None, None]) | torch.eye(width, dtype=torch.bool)
        out = self.model.forward_hidden(ids, at.expand(len(unique), -1), additive(seen[:, None], self.model.dtype), self.cache)
        self.cache.filled = width
        return out[torch.arange(len(unique)), size - 1], size

    def logits(self) -> Tensor:
        return self.model.logits(self.hidden)

    def keep(self, rows: Tensor) -> None:
        self.cache.rows(rows)
        self.hidden, self.length, self.seen = self.hidden[rows], self.length[rows], self.seen[rows]

    def push(self, steps: Tensor) -> None:
        self.seen = torch.nn.functional.pad(self.seen, (0, 1), value=True)
        mask = additive(self.seen[:, None, None], self.model.dtype)
        self.hidden = self.model.forward_hidden(steps[:, None], self.length[:, None], mask, self.cache)[:, 0]
        self.cache.filled += 1
        self.length = self.length + 1


def additive(seen: Tensor, dtype: torch.dtype) -> Tensor:
    """0 where seen, the least number elsewhere."""
    return torch.zeros(seen.shape, dtype=dtype).masked_fill(~seen, torch.finfo(dtype).min)
