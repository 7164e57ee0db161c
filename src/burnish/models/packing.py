"""Tree packing: a prompt once, then all its answers as branches. One forward over trees gives every row's states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

TREE_LIMIT = 384  # columns of one tree: attention grows with the square, so very long families are split


@dataclass(frozen=True)
class Trees:
    """R trees of L columns. `place` (B,T+1): the flat column (of R*L) of each row's state; `inside` (B,T+1): is there one?"""

    ids: Tensor
    position: Tensor
    branch: Tensor  # (R,L): 0 prompt, 1.. answers, -1 padding
    place: Tensor
    inside: Tensor

    def attention(self, dtype: torch.dtype) -> Tensor:
        """(R,1,L,L) additive mask: a column sees the prompt and its own branch, up to itself."""
        R, L = self.ids.shape
        causal = torch.ones(L, L, dtype=torch.bool).tril()
        mine, other = self.branch[:, :, None], self.branch[:, None, :]
        seen = (causal & ((mine == other) | (other == 0)) & (other >= 0)) | torch.eye(L, dtype=torch.bool)
        return torch.zeros(R, 1, L, L, dtype=dtype).masked_fill(~seen[:, None], torch.finfo(dtype).min)


def trees(prompts: Sequence[tuple[int, ...]], steps: Tensor, length: Tensor) -> Trees:
    """Pack B rows (prompt ids, steps (B,T), length (B,)) so that equal prompts are computed once."""
    families = _families(prompts, length, TREE_LIMIT)
    L = max(len(prompts[rows[0]]) + int(length[rows].sum()) for rows in families)
    R, (B, T) = len(families), steps.shape
    ids, position = torch.zeros(R, L, dtype=torch.int64), torch.zeros(R, L, dtype=torch.int64)
    branch, place = torch.full((R, L), -1), torch.zeros(B, T + 1, dtype=torch.int64)
    at = torch.arange(T + 1)
    for r, rows in enumerate(families):
        P = len(prompts[rows[0]])
        ids[r, :P] = torch.tensor(prompts[rows[0]])
        position[r, :P], branch[r, :P] = at_range(P), 0
        column = P
        for number, row in enumerate(rows, 1):
            n = int(length[row])
            end = column + n
            ids[r, column:end] = steps[row, :n]
            position[r, column:end], branch[r, column:end] = P + at_range(n), number
            place[row, 0], place[row, 1 : n + 1] = r * L + P - 1, r * L + column + at_range(n)
            column = end
    return Trees(ids, position, branch, place, at <= length[:, None])


def at_range(n: int) -> Tensor:
    """0 .. n-1."""
    return torch.arange(n)


def _families(prompts: Sequence[tuple[int, ...]], length: Tensor, limit: int) -> list[list[int]]:
    """Rows of equal prompts, split where their answers together would pass limit columns."""
    families: dict[tuple[int, ...], list[list[int]]] = {}
    filled: dict[tuple[int, ...], int] = {}
    for row, prompt in enumerate(prompts):
        n = int(length[row])
        mine = families.setdefault(prompt, [[]])
        if mine[-1] and filled[prompt] + n > limit:
            mine.append([])
        filled[prompt] = n + (filled[prompt] if mine[-1] else len(prompt))
        mine[-1].append(row)
    return [rows for mine in families.values() for rows in mine]
