"""The verbs. A kind gives `states`, `logits`, `values` and `decode`; everything else is here, once."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from ..errors import ModelError
from ..types.chance import mix
from ..types.context import Context, Origin, StopReason
from ..types.table import Feedback, Rollouts, Scores, blank
from .forward import Distribution, evaluate, gathered_distribution
from .learning import Gradient, Loss, Reduction, differentiate, gathered, packed, units_of
from .options import Learner
from .sampling import Decoding, Support, draw


class Model(nn.Module):
    """Samples, scores and learns trajectories of T steps. State t (B,T+1) is what is known before step t; the last one after all steps."""

    offers: ClassVar[frozenset[str]] = frozenset({"sample", "logp", "nll", "entropy", "value", "hidden", "distribution", "gradient"})
    ends: tuple[int, ...] = ()  # ids after which a row is over
    horizon: int | None = None  # natural length of an episode; reaching it is TERMINAL
    rows_at_once: int = 512  # decoding works on so many rows at a time; no sample depends on it

    def __init__(self, learner: Learner | None = None):
        super().__init__()
        self.learner = learner or Learner()
        self.version, self.touched = 0, False
        self.optimizer: torch.optim.Optimizer | None = None

    # -- what a kind gives
    def states(self, batch: Rollouts) -> Tensor:
        """(B,T+1,H), differentiable."""
        raise NotImplementedError

    def logits(self, hidden: Tensor) -> Tensor:
        """(N,V) of states (N,H), before temperature."""
        raise NotImplementedError

    def values(self, hidden: Tensor) -> Tensor:
        """(...) of states (...,H)."""
        raise ModelError(f"{type(self).__name__} has no value head")

    def decode(self, table: Rollouts) -> Decoding:
        """Begin to decode after the steps of these rows."""
        raise NotImplementedError

    def frozen_head(self) -> Any:
        """`logits` as it is now, whatever the model becomes."""
        raise NotImplementedError

    def cost(self, batch: Rollouts) -> Tensor:
        """(B,) what a row costs in a forward, in tokens."""
        return batch.length + 1

    def text(self, steps: Sequence[int]) -> str:
        """What a person or judge reads."""
        return " ".join(map(str, steps))

    def read(self, answer: str) -> list[int]:
        """The steps of a written answer, its end included."""
        raise NotImplementedError

    # -- drawing
    @torch.no_grad()
    def sample(
        self,
        start: Sequence[Context] | Rollouts,
        n: int | Tensor = 1,
        *,
        key: Tensor,
        max_steps: int,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
    ) -> Rollouts:
        """Continue whatever is given, n times each (or n (B,) times). temperature 0 is greedy.

        A draw depends on the key, the row's own key, its length and its copy number: never on its batch mates."""
        table = start if isinstance(start, Rollouts) else blank(start)
        copies = torch.as_tensor(n).expand(len(table))
        table = table.select(torch.arange(len(table)).repeat_interleave(copies))
        number = torch.cat([torch.arange(int(c)) for c in copies]) if len(copies) else copies
        keys = mix(key, table.key, table.length, number)
        support, ends = Support(temperature, top_k, top_p, min_p), torch.tensor(self.ends, dtype=torch.int64)
        whole: Rollouts | None = None
        for rows in torch.arange(len(table)).split(self.rows_at_once):
            part = table.select(rows)
            columns = draw(self.decode(part), part, keys[rows], support, max_steps=max_steps, ends=ends, horizon=self.horizon)
            piece = part.replaced(
                {**columns, "group": part.group, "weight": part.weight, "version": torch.full((len(part),), self.version)}
            )
            whole = piece if whole is None else whole.concat(piece)
        return self.with_text(whole if whole is not None else table)

    def with_text(self, table: Rollouts) -> Rollouts:
        """The column `text`: each row's steps as a person reads them."""
        return table.attach(text=[self.text(s[:n]) for s, n in zip(table.steps.tolist(), table.length.tolist(), strict=True)])

    def encode(self, contexts: Sequence[Context], answers: Sequence[str | Sequence[int]], feedback: Feedback | None = None) -> Rollouts:
        """Logged answers as a table: origin DEMONSTRATION, and nobody knows their sampling log-probs (NaN)."""
        written = [self.read(a) if isinstance(a, str) else list(a) for a in answers]
        table, T = blank(contexts), max(map(len, written), default=0)
        inside = torch.arange(T) < torch.tensor([[len(a)] for a in written])
        steps = torch.tensor([[*a, *[0] * (T - len(a))] for a in written], dtype=torch.int64).reshape(len(written), T)
        unknown = torch.where(inside, torch.nan, 0.0)
        columns = {
            "steps": steps,
            "mask": inside,
            "origin": torch.where(inside, int(Origin.DEMONSTRATION), int(Origin.PADDING)),
            "turn": torch.zeros_like(steps),
            "sampled_logp": unknown,
            "kept": unknown,
            "stop": torch.full((len(written),), int(StopReason.TERMINAL)),
        }
        return self.with_text(Rollouts(contexts, table.columns | columns, feedback=feedback))

    # -- scoring
    def evaluate(self, batch: Rollouts, want: Sequence[Any]) -> Scores:
        """One differentiable forward of the whole table."""
        return evaluate(self, batch, want)

    def pieces(self, batch: Rollouts, unit: str = "row") -> list[Tensor]:
        """Row numbers of each micro-batch: by rows when the learner says so, else by tokens."""
        one = torch.ones(len(batch), dtype=torch.int64)
        cost, limit = (one, self.learner.micro_batch) if self.learner.micro_batch else (self.cost(batch), self.learner.tokens)
        return packed(units_of(batch, unit), cost, limit)

    @torch.no_grad()
    def score(self, batch: Rollouts, want: Sequence[Any] = ("logp",)) -> Scores:
        """Outputs at the steps of the mask, without gradient to parameters. 0 elsewhere."""
        found = [(rows, self.evaluate(batch.select(rows), want)) for rows in self.pieces(batch)]
        whole = gathered(found, len(batch))
        if "distribution" in want:
            whole["distribution"] = gathered_distribution([(r, s["distribution"]) for r, s in found], len(batch))
        return whole

    # -- learning
    def gradient(
        self, batch: Rollouts, loss: Loss, want: Sequence[Any] = ("logp",), *, unit: str = "row", reduction: Reduction = "token_mean"
    ) -> Gradient:
        """d loss / d outputs by autograd, then back through the network one micro-batch at a time.

        Where whole units fit into a micro-batch one forward suffices; otherwise the outputs are computed once more."""
        pieces = self.pieces(batch, unit)
        limit = self.learner.micro_batch or max(self.learner.tokens, 1)
        cost = torch.ones(len(batch), dtype=torch.int64) if self.learner.micro_batch else self.cost(batch)
        one_pass = all(int(cost[rows].sum()) <= limit or len(rows) == 1 for rows in pieces)
        cut = {} if one_pass else self._cotangents(batch, loss, want, reduction)
        self.zero_grad()
        report: dict[str, float] = cut.pop("report", {})
        seen: list[tuple[Tensor, Scores]] = []
        for rows in pieces if one_pass else self.pieces(batch):
            part = batch.select(rows)
            scores = self.evaluate(part, want)
            if one_pass:
                back, values = differentiate(loss, scores, part, batch, reduction)
                report = {n: report.get(n, 0.0) + x for n, x in values.items()}
            else:
                back = {n: g[rows][:, : scores[n].shape[1]] for n, g in cut.items()}
            names = [n for n in back if scores[n].requires_grad]
            if names:
                torch.autograd.backward([scores[n] for n in names], [back[n] for n in names])
            seen.append((rows, Scores({n: x.detach() for n, x in scores.items() if isinstance(x, Tensor) and n != "hidden"})))
        found = {n: torch.zeros_like(p) if p.grad is None else p.grad.clone() for n, p in self.trainable()}
        self.zero_grad()
        return Gradient(found, report, gathered(seen, len(batch)))

    def _cotangents(self, batch: Rollouts, loss: Loss, want: Sequence[Any], reduction: Reduction) -> dict[str, Any]:
        back, report = differentiate(loss, self.score(batch, want), batch, batch, reduction)
        return {**back, "report": report}

    def trainable(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Names and parameters that learn."""
        return ((n, p) for n, p in self.named_parameters() if p.requires_grad)

    def apply_gradient(self, gradient: Gradient) -> float:
        """One optimizer step; returns the norm before clipping. Raises ModelError when a number in it is not finite: nothing moved then."""
        norm = gradient.norm()
        if not norm < float("inf"):
            bad = [n for n, g in gradient.items() if not g.isfinite().all()]
            raise ModelError(
                "the gradient is not finite", where=", ".join(bad[:3]), seen=norm, fix="a smaller --lr, or look at the rewards"
            )
        limit = self.learner.max_grad_norm
        scale = limit / norm if limit and norm > limit else 1.0
        optimizer = self._optimizer()
        for name, p in self.trainable():
            p.grad = gradient[name] * scale
        for group in optimizer.param_groups:
            group["lr"] = self.learner.rate(self.version)
        optimizer.step()
        self.zero_grad()
        self.version, self.touched = self.version + 1, True
        return norm

    def _optimizer(self) -> torch.optim.Optimizer:
        if self.optimizer is None:
            say, learnt = self.learner, [p for _, p in self.trainable()]
            if say.optimizer == "sgd":
                self.optimizer = torch.optim.SGD(learnt, lr=say.lr, weight_decay=say.weight_decay)
            else:
                how: dict[str, Any] = {"betas": (say.beta1, say.beta2), "eps": say.eps, "weight_decay": say.weight_decay}
                self.optimizer = torch.optim.AdamW(learnt, lr=say.lr, fused=True, **how)
        return self.optimizer

    def update(self, batch: Rollouts, loss: Loss, want: Sequence[Any] = ("logp",), **how: Any) -> Gradient:
        """gradient, then one optimizer step; the gradient's `report` says what was optimised."""
        gradient = self.gradient(batch, loss, want, **how)
        gradient.report["gradient_norm"] = self.apply_gradient(gradient)
        return gradient

    @contextmanager
    def shifted(self, gradient: Gradient) -> Iterator[Self]:
        """The model one step further, for a while; undone to the bit, optimizer and version too."""
        before, touched = self.state(whole=True), self.touched
        self.apply_gradient(gradient)
        self.version = -1 - before["version"]  # no later version can be mistaken for this one
        try:
            yield self
        finally:
            self.load_state(before)
            self.touched = touched

    # -- copies
    def fork(self, learner: Learner | None = None) -> Self:
        """A copy that learns by itself. The weights under adapters are shared, not copied."""
        optimizer, self.optimizer = self.optimizer, None
        try:
            other = copy.deepcopy(self, {id(p): p for p in self.parameters() if getattr(p, "is_base", False)})
        finally:
            self.optimizer = optimizer
        other.learner = learner or self.learner
        other.touched = True
        return other

    def snapshot(self) -> Self:
        """A copy that stays as it is."""
        other = self.fork().requires_grad_(False)
        other.touched = False
        return other

    @torch.no_grad()
    def follow(self, other: Model, rate: float = 1.0) -> None:
        """Move toward the other by rate; 1 copies it."""
        theirs = dict(other.named_parameters())
        for name, mine in self.named_parameters():
            if mine is not theirs[name]:
                mine.lerp_(theirs[name], rate)
        self.touched, self.version = True, other.version if rate == 1.0 else self.version + 1

    def state(self, whole: bool = False) -> dict[str, Any]:
        """All that a resume needs. A model that nothing has moved says so, and is not written."""
        if not (self.touched or whole):
            return {"version": self.version, "touched": False}
        parameters = {
            n: p.detach().clone()
            for n, p in self.named_parameters()
            if p.requires_grad or not any(q.requires_grad for q in self.parameters())
        }
        memory: dict[str, Tensor] = {}
        if self.optimizer is not None:
            for name, p in self.trainable():
                memory |= {f"{name}/{k}": torch.as_tensor(v).clone() for k, v in self.optimizer.state.get(p, {}).items() if v is not None}
        return {"version": self.version, "touched": True, "parameters": parameters, "optimizer": memory}

    @torch.no_grad()
    def load_state(self, state: dict[str, Any]) -> None:
        """The inverse of `state`."""
        self.version, self.touched = state["version"], state["touched"]
        if "parameters" not in state:
            return
        mine = dict(self.named_parameters())
        for name, value in state["parameters"].items():
            mine[name].copy_(value)
        self.optimizer = None
        if state["optimizer"]:
            kept = self._optimizer()
            for name, p in self.trainable():
                held = {k.removeprefix(f"{name}/"): v.clone() for k, v in state["optimizer"].items() if k.startswith(f"{name}/")}
                if held:
                    kept.state[p] = held

    def with_learner(self, **changes: Any) -> Self:
        """The same model with other learning options."""
        self.learner = replace(self.learner, **changes)
        self.optimizer = None
        return self


__all__ = ["Distribution", "Model"]
