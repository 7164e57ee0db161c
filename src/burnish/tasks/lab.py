"""The tree lab: tasks whose every answer can be listed, so that expectations, gradients and optima are exact."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..lazy import lazy
from ..types.context import Context

if TYPE_CHECKING:
    import torch

    from ..models.tabular import Tabular
    from ..types import table
    from ..types.table import Feedback, Rollouts
else:
    torch, table = lazy("torch"), lazy("burnish.types.table")

Reward = Callable[[int, Sequence[int]], float]


class Strings:
    """Answers are strings of symbols; reward(context number, symbols) -> float. It is its own judge.

    `exact`: play lists what could be drawn instead of drawing. Each context's n answers become every n-tuple of strings, a group of its
    own, its rows weighted by the tuple's probability: sums over the table are expectations over draws."""

    gives = frozenset({"reward", "demonstration"})
    name = "strings"

    def __init__(self, contexts: int, reward: Reward, *, horizon: int, exact: bool = False, answers: Sequence[str] | None = None):
        self.reward, self.max_steps, self.exact = reward, horizon, exact
        said = answers or [""] * contexts
        self.pool = [Context(f"c{i}", i, {"answer": said[i]}) for i in range(contexts)]

    def contexts(self, cursor: int, n: int) -> list[Context]:
        """The same contexts in turn."""
        return [self.pool[i % len(self.pool)] for i in range(cursor, cursor + n)]

    def held_out(self, n: int) -> list[Context]:
        """All contexts."""
        return self.pool[:n]

    def play(self, policy: Tabular, start: Any, n: int, *, key: torch.Tensor, max_steps: int, **support: Any) -> Rollouts:
        """Draw, or list every tuple."""
        if not self.exact or support.get("temperature") == 0:
            return policy.sample(start, n, key=key, max_steps=max_steps, **support)
        whole = [self._tuples(policy, context, n, number) for number, context in enumerate(start)]
        found = whole[0]
        for more in whole[1:]:
            found = found.concat(more)
        return found

    def _tuples(self, policy: Tabular, context: Context, n: int, number: int) -> Rollouts:
        every = policy.enumerate([context])
        tuples = list(itertools.product(range(len(every)), repeat=n))
        rows = torch.tensor([row for one in tuples for row in one])
        chance = torch.stack([every.weight[list(one)].prod() for one in tuples]).repeat_interleave(n)
        group = (number * len(tuples) + torch.arange(len(tuples))).repeat_interleave(n)
        return every.select(rows).attach(weight=chance, group=group)

    def judge(self, batch: Rollouts) -> Feedback:
        """`reward` (B,)."""
        rows = zip(batch.contexts, batch.steps.tolist(), batch.length.tolist(), strict=True)
        said = [self.reward(c.root.prompt, steps[:n]) for c, steps, n in rows]  # type: ignore[arg-type]
        return table.Feedback(columns={"reward": torch.tensor(said, dtype=torch.float64)}, said_by={"reward": self.name})


def value(policy: Tabular, task: Strings) -> torch.Tensor:
    """J: the mean over contexts of the expected reward, differentiable in the policy's table."""
    every = policy.enumerate(task.pool)
    chance = policy.evaluate(every, ("logp",)).logp.sum(1).exp()
    return (chance * task.judge(every).columns["reward"]).sum() / len(task.pool)


def optimum(policy: Tabular, task: Strings, beta: float) -> torch.Tensor:
    """(contexts, strings): the policy that maximises E[R] - beta KL(. || policy): proportional to policy(y) exp(R(y) / beta)."""
    every = policy.enumerate(task.pool)
    score = every.weight.log() + task.judge(every).columns["reward"] / beta
    return score.reshape(len(task.pool), -1).softmax(1)
