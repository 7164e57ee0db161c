"""The base of what draws its own rows: draw, judge, assign, improve."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ..lazy import lazy
from ..parts import Over, Part, measures, objectives, use
from ..types.context import Context, StopReason
from ..types.limits import Count, Positive, Reduction, Share
from .base import Build, Method
from .fields import Role, role
from .plan import column

if TYPE_CHECKING:
    import torch

    from ..models import learning
    from ..models.base import Model
    from ..models.learning import Gradient
    from ..types import chance, table
    from ..types.table import Rollouts, Scores, Term
else:
    torch, table, chance, learning = map(lazy, ("torch", "burnish.types.table", "burnish.types.chance", "burnish.models.learning"))

Parts = tuple[Part, ...]
ON = {"Steps": "mask", "Rows": "mask", "Pairs": "pairs", "Groups": "group"}


class OnPolicy(Method):
    """Draw, judge, assign, improve."""

    reference: Model = role("frozen")  # what the policy is held near, when some part asks
    critic: Model = role("copy")  # what predicts returns, when some part asks

    reward: Parts = ()  # changes of the reward before credit
    keep: Parts = ()  # which rows or steps are trained on
    credit: Part | None = None  # reward -> advantage
    shape: Parts = ()  # advantage -> advantage
    objective: Part | None = None  # what is minimised
    penalty: Parts = ()  # further terms of the loss
    critic_objective: Part | None = use(objectives.value_squared)  # the critic's loss
    divergence: Over | None = None  # an exact divergence, for parts that ask for one
    measure: Parts = (measures.ratio, measures.advantage_spread)  # what is reported of each update

    group_size: Positive = 8  # answers per context
    temperature: float = 1.0  # of the draws and of the log-probs
    top_p: Share = 1.0  # draw from the most probable symbols of this mass
    top_k: Count = 0  # draw from so many symbols; 0: all
    reduction: Reduction = "token_mean"  # how terms become one number: by token, by sequence, or by a constant length
    behaviour: Literal["sampled", "old", "reference"] = "sampled"  # whose log-probs ratios are taken to
    epochs: Positive = 1  # passes over each batch
    minibatches: Positive = 1  # updates per pass
    critic_lr: float = 1e-3  # the critic's step size

    def build_role(self, name: str, said: Role, build: Build | None) -> Model:
        model = super().build_role(name, said, build)
        return model.with_learner(lr=self.critic_lr) if name == "critic" else model

    def draw(self, start: Sequence[Context] | Rollouts, n: Any = None, purpose: str = "rollout") -> Rollouts:
        """Rollouts with the method's own support."""
        support: dict[str, Any] = {"temperature": self.temperature, "top_p": self.top_p, "top_k": self.top_k}
        return self.rollout(start, self.group_size if n is None else n, purpose=purpose, **support)

    def collect(self, contexts: list[Context]) -> Rollouts:
        """`group_size` answers to each context."""
        return self.draw(contexts)

    def assign(self, batch: Rollouts) -> Rollouts:
        """keep, score, reward, credit, shape. Failed and unjudged rows leave first."""
        batch = batch.select(batch.stop != StopReason.FAILED)
        if "reward" in batch:
            batch = batch.select(batch.said("reward"))
        for part in self.keep:
            batch = _placed(batch) if "step_reward" in part.signature.columns else batch
            batch = batch if self._ready(part, batch) else self.score(batch)
            kept = self.call(part, batch)
            batch = batch.select(kept) if kept.ndim == 1 else batch.only(kept)
        batch = batch.select(batch.mask.any(1))
        if not len(batch):
            return batch
        return self._credit(self._reward(self.score(batch)))

    def _ready(self, part: Part, batch: Rollouts, scores: Scores | None = None) -> bool:
        """Is all that the part reads there already?"""
        names = [column(a, "assign" if scores is None else "loss", self.behaviour) for a in part.signature.columns]
        return all(n in (scores or ()) or n in self.memories or hasattr(batch, n) for n in names)

    def _reward(self, batch: Rollouts) -> Rollouts:
        if "reward" not in batch:
            return batch
        for part in self.reward:
            batch = _placed(batch) if "step_reward" in part.signature.columns else batch
            made = self.call(part, batch)
            batch = batch.attach(**({"reward": made} if made.ndim == 1 else {"step_reward": made}))
        return _placed(batch)

    def _credit(self, batch: Rollouts) -> Rollouts:
        for part in (*filter(None, [self.credit]), *self.shape):
            made = self.call(part, batch)
            made = made if isinstance(made, dict) else {"advantage": made}
            columns: dict[str, Any] = {n: torch.where(batch.mask, x if x.ndim == 2 else x[:, None], 0.0) for n, x in made.items()}
            batch = batch.attach(**columns)
        return batch

    def loss(self, scores: Scores, batch: Rollouts) -> dict[str, Term]:
        """The policy's terms."""
        return self.terms(scores, batch, *filter(None, [self.objective]), *(p for p in self.penalty if p.weight))

    def critic_loss(self, scores: Scores, batch: Rollouts) -> dict[str, Term]:
        """The critic's terms."""
        return self.terms(scores, batch, *filter(None, [self.critic_objective]))

    def terms(self, scores: Scores, batch: Rollouts, *parts: Part) -> dict[str, Term]:
        """Each part as a term under its own name, on what its annotation says."""
        return {p.name: table.Term(self.call(p, batch, scores), on=ON[p.signature.returns[""]], weight=p.weight) for p in parts}

    def gradient(self, batch: Rollouts) -> Gradient:
        """The policy's gradient on a table that has its credit."""
        return self.policy.gradient(batch, self.loss, self.plan.want, unit=self.plan.unit, reduction=self.reduction)

    def split(self, batch: Rollouts) -> Iterator[Rollouts]:
        """epochs x minibatches of whole units, in keyed order."""
        if self.epochs == self.minibatches == 1:
            yield batch
            return
        units = learning.units_of(batch, self.plan.unit)
        for epoch in range(self.epochs):
            order = chance.shuffled(self.key("split", epoch), len(units))
            for some in order.tensor_split(min(self.minibatches, len(units))):
                yield batch.select(torch.cat([units[i] for i in some.tolist()]))

    def improve(self, batch: Rollouts) -> dict[str, float]:
        if not len(batch):
            return {"updates": 0, "trained_steps": 0}
        found: list[dict[str, float]] = []
        for part in self.split(batch):
            found.append(self._update(part))
            self.ledger.add("trained_steps", int(part.mask.sum()))
        return _together(found) | {"updates": len(found), "trained_steps": int(batch.mask.sum())}

    def _update(self, part: Rollouts) -> dict[str, float]:
        gradient = self.policy.update(part, self.loss, self.plan.want, unit=self.plan.unit, reduction=self.reduction)
        metrics = dict(gradient.report)
        for measure in (m for m in self.measure if self._ready(m, part, gradient.scores)):
            mine = self.objective.settings if self.objective else {}
            shared = {o: mine[o] for o in measure.signature.options if o in mine and o not in measure.options}
            metrics |= self.call(use(measure, **{**measure.options, **shared}), part, gradient.scores)
        if "critic" in self.plan.roles:
            report = self.critic.update(part, self.critic_loss, self.plan.critic_want, reduction=self.reduction).report
            metrics |= {(n if n != "gradient_norm" else "critic_gradient_norm"): x for n, x in report.items()}
        return metrics


def _placed(batch: Rollouts) -> Rollouts:
    """A step reward: what judges or parts said of steps, else the row's reward on its last step."""
    from ..rewards.shaping import at_end

    return batch if "step_reward" in batch else batch.attach(step_reward=at_end(batch.reward, batch.mask))


def _together(found: list[dict[str, float]]) -> dict[str, float]:
    """Metrics of several updates as one: least of _min, greatest of _max, mean of the rest. `ratio_first` is the first update's mean."""
    how: dict[str, Callable[[list[float]], float]] = {"min": min, "max": max}
    names = dict.fromkeys(n for m in found for n in m)
    values = {n: [m[n] for m in found if n in m] for n in names}
    first = {"ratio_first": found[0]["ratio_mean"]} if len(found) > 1 and "ratio_mean" in found[0] else {}
    return first | {n: how[n.rpartition("_")[2]](x) if n.rpartition("_")[2] in how else sum(x) / len(x) for n, x in values.items()}
