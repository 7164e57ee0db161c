"""A person's own reward functions, called in this one audited place."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import FeedbackError, Refused
from ..lazy import lazy

if TYPE_CHECKING:
    import torch

    from ..types import table
    from ..types.context import Context
    from ..types.table import Feedback, Rollouts
else:
    torch, table = lazy("torch"), lazy("burnish.types.table")

OFFERED = ("prompt", "answer", "meta", "reference", "finished", "context")


class Functions:
    """reward(answer, ...) -> float, or None to abstain.

    A function names the arguments it wants: `prompt`, `answer` (text), `meta` (the row's other columns), `reference` (meta["answer"]),
    `finished` (did it end by itself?), `context`, or any key of meta; **others takes all of meta. Several functions are summed with their
    weights; one that abstains adds nothing to that row; a row of which nobody says anything leaves the batch and is counted."""

    gives = frozenset({"reward"})

    def __init__(self, functions: Sequence[Callable[..., float | None]], weights: Sequence[float] | None = None):
        self.functions, self.weights = list(functions), list(weights or [1.0] * len(functions))
        self.name = "+".join(map(name_of, self.functions))
        if len(self.weights) != len(self.functions):
            raise Refused(f"{len(self.functions)} reward functions but {len(self.weights)} weights")
        self.wanted = [_wanted(f) for f in self.functions]

    def judge(self, batch: Rollouts) -> Feedback:
        """`reward` (B,): the weighted sum of what was said. Raises FeedbackError naming the function and the sample."""
        said = torch.full((len(batch), len(self.functions)), torch.nan, dtype=torch.float64)
        for row, (context, answer) in enumerate(zip(batch.contexts, batch.text, strict=True)):
            finished = int(batch.stop[row]) == 0
            for k, function in enumerate(self.functions):
                value = self._ask(function, self.wanted[k], context, answer, finished, row)
                said[row, k] = torch.nan if value is None else value  # the one place where abstaining becomes NaN
        total = (said.nan_to_num(0.0) * torch.tensor(self.weights, dtype=torch.float64)).sum(1)
        reward = torch.where(said.isnan().all(1), torch.nan, total)
        return table.Feedback(columns={"reward": reward}, items={"functions": said}, said_by={"reward": self.name})

    def _ask(
        self, function: Callable[..., Any], wanted: frozenset[str] | None, context: Context, answer: str, finished: bool, row: int
    ) -> float | None:
        meta = dict(context.root.meta)
        offered = {**meta, "prompt": context.root.prompt, "answer": answer, "meta": meta, "reference": meta.get("answer")}
        offered |= {"finished": finished, "context": context}
        where = f"reward function {name_of(function)}, row {row}, context {context.id!r}"
        try:
            value = function(**{n: v for n, v in offered.items() if wanted is None or n in wanted})
        except Exception as error:
            what = f"raised {type(error).__name__}: {error}"
            fix = "mend the function, or let it return None to abstain on such rows"
            raise FeedbackError(what, where=where, seen=f"answer {answer!r}", fix=fix) from error
        return _number(value, where, answer)


def _number(value: Any, where: str, answer: str) -> float | None:
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if math.isfinite(number):
        return number
    fix = "return a finite float, or None to abstain"
    raise FeedbackError(
        "answered with what is no reward", where=where, seen=f"{value!r} for answer {answer!r}", expected="a number", fix=fix
    )


def name_of(function: Callable[..., Any]) -> str:
    """A name for anything callable: functions, partials, objects."""
    inner = function.func if isinstance(function, functools.partial) else function
    return str(getattr(inner, "__name__", type(inner).__name__))


def _wanted(function: Callable[..., Any]) -> frozenset[str] | None:
    """Argument names, or None when it takes everything."""
    if not callable(function):
        raise Refused(f"{function!r} cannot be called", expected="a function such as: def reward(prompt, answer): return ...")
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return frozenset(p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))
