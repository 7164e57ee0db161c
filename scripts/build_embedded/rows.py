"""Training rows: the examples of a question as a tree of tokens (what prompts share is there once), trees packed into rows.

A token sees its own ancestors only (4-D mask), and its position is its depth: so every branch reads exactly what it would read alone."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

import numpy as np
import torch
from scripts.build_embedded.examples import Example, Mixture, unit
from scripts.build_embedded.folder import CONTROLS, SPECIAL, WORDS, build_tokenizer

IDS = build_tokenizer().get_vocab()
PIECE = re.compile("|".join(map(re.escape, (*SPECIAL, *CONTROLS, *sorted(set(WORDS), key=lambda word: -len(word))))) + r"|[\s\S]")
END = IDS["<end>"]
WEIGHTS = {"answer": 1.0, "score": 1.5, "verdict": 1.5, "choose": 1.5}


def encode(text: str) -> list[int]:
    """The same ids as the tokenizer gives, for text of the grammar."""
    return [IDS[piece] for piece in PIECE.findall(text)]


class Tree:
    """A prefix tree of tokens, in an order in which parents come first."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.parents: list[int] = []
        self.depths: list[int] = []
        self.children: dict[tuple[int, int], int] = {}
        self.losses: list[tuple[int, int, float, str]] = []  # node that predicts, target, weight, format

    def step(self, parent: int, token: int) -> int:
        """The child of this node with this token; made if it is new."""
        node = self.children.get((parent, token))
        if node is None:
            node = self.children[parent, token] = len(self.tokens)
            self.tokens.append(token)
            self.parents.append(parent)
            self.depths.append(0 if parent < 0 else self.depths[parent] + 1)
        return node

    def add(self, example: Example) -> None:
        """Put one example in; its target ends with `<end>`, which is predicted but not put in."""
        name, prompt, target = example
        node, weight = -1, WEIGHTS.get(name, 1.0)
        for token in encode(prompt):
            node = self.step(node, token)
        for token in encode(target):
            self.losses.append((node, token, weight, name))
            node = self.step(node, token)
        self.losses.append((node, END, weight, name))


@dataclass
class Rows:
    """A batch: tokens and positions (R, C), mask (R, C, C), and per target its place in the flat batch, its id, its weight
    and its format (N,)."""

    tokens: torch.Tensor
    positions: torch.Tensor
    mask: torch.Tensor
    places: torch.Tensor
    targets: torch.Tensor
    weights: torch.Tensor
    names: tuple[str, ...]


def plant(rng: random.Random, mixture: Mixture, columns: int) -> Tree:
    """The tree of one unit; branches that would not fit into a row are left out."""
    tree = Tree()
    for example in unit(rng, mixture):
        if len(tree.tokens) + len(example[1]) + len(example[2]) - len(example[1]) // 2 <= columns:
            tree.add(example)
    return tree


def pack(rng: random.Random, mixture: Mixture, rows: int, columns: int) -> Rows:
    """Fill rows with trees, first fit, until four trees in a row found no place."""
    batch = np.zeros((2, rows, columns), dtype=np.int64)
    mask = np.zeros((rows, columns, columns), dtype=bool)
    mask[:, np.arange(columns), np.arange(columns)] = True
    filled, losses, failures = [0] * rows, [], 0
    while failures < 4:
        tree = plant(rng, mixture, columns)
        size = len(tree.tokens)
        row = next((row for row in range(rows) if filled[row] + size <= columns), None)
        if row is None:
            failures += 1
            continue
        start = filled[row]
        batch[0, row, start : start + size], batch[1, row, start : start + size] = tree.tokens, tree.depths
        block = mask[row]
        for node, parent in enumerate(tree.parents):
            if parent >= 0:
                block[start + node, start : start + node] = block[start + parent, start : start + node]
        losses += [(row * columns + start + node, *rest) for node, *rest in tree.losses]
        filled[row] = start + size
    places, targets, weights, names = zip(*losses, strict=False)
    return Rows(torch.from_numpy(batch[0]), torch.from_numpy(batch[1]), torch.from_numpy(mask), torch.tensor(places), torch.tensor(targets),
                torch.tensor(weights), names)  # fmt: skip
