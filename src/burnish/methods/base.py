"""Methods: roles + options + parts + memories, and stages that pass one growing table on. Read this file first.

    contexts --collect--> Rollouts --judge--> feedback --assign--> advantage --improve--> a better policy --evolve--> memories

A method file is the diff to its parent. A part's arguments are columns of the table; its signature alone says which forwards, roles and
feedback a run needs. Fields are read once; afterwards only `carried` fields and memories change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ..errors import FeedbackError, ModelError, Refused
from ..lazy import lazy
from ..memory.base import Ledger, Memory
from ..parts import Over, Part, measures, objectives, use
from ..rollouts.one_shot import one_shot
from ..types.context import Context, Origin, StopReason
from ..types.limits import Count, Positive, Reduction, Share
from .fields import Role, carried, fields_of, role, settings
from .plan import column, gives, planned

if TYPE_CHECKING:
    import torch

    from ..feedback.judge import Judge
    from ..models import learning
    from ..models.base import Model
    from ..models.learning import Gradient
    from ..types import chance, table
    from ..types.table import Rollouts, Scores, Term
else:
    torch, table, chance, learning = map(lazy, ("torch", "burnish.types.table", "burnish.types.chance", "burnish.models.learning"))

Parts = tuple[Part, ...]
Build = Callable[[str], "Model"]  # a model by its name or path
ON = {"Steps": "mask", "Rows": "mask", "Pairs": "pairs", "Groups": "group"}


class Method:
    """What every method has: fields, a plan, models, memories, a clock, and the flow."""

    kind: ClassVar[str] = "method"
    paper: ClassVar[str] = ""
    sees_truth: ClassVar[bool] = False  # does it look at the truth outside of training?
    needs: ClassVar[tuple[str, ...]] = ()  # roles that an overridden stage uses by hand
    attaches: ClassVar[tuple[str, ...]] = ()  # columns that an overridden stage adds
    asks: ClassVar[tuple[str, ...]] = ("reward",)  # feedback without which it cannot learn
    unused: ClassVar[tuple[str, ...]] = ()  # inherited options that mean nothing here, and are refused

    time: int = carried(0)
    cursor: int = carried(0)
    prompts: Positive = 16  # contexts per step

    def __init__(self, policy: Model, task: Any, judge: Judge | None = None, *, build: Build | None = None, seed: int = 0, **changes: Any):
        values = settings(type(self), changes)
        made, roles = planned(type(self), values, gives(task, judge))
        self.__dict__.update(policy=policy, task=task, judged_by=judge, seed=seed, clock=0, plan=made, ledger=Ledger(), roles=roles)
        self.__dict__.update({n: v for n, v in values.items() if not isinstance(v, Role)})
        self.__dict__["memories"] = {n: v for n, v in values.items() if isinstance(v, Memory)} | {"ledger": self.ledger}
        for name in roles:
            self.__dict__[name] = values[name] if not isinstance(values[name], Role) else self.build_role(name, values[name], build)
        self._check_offers()
        self.prepare()

    def build_role(self, name: str, said: Role, build: Build | None) -> Model:
        """The model that plays a role, as it is at step 0."""
        if said.word == "frozen":
            return self.policy.snapshot()
        if said.word == "copy":
            return self.policy.fork()
        if build is None:
            raise Refused(f"{name}: {said.word!r} is the name of a model, and nothing here can load models by name")
        return build(said.word).snapshot()

    def _check_offers(self) -> None:
        asked = {**self.plan.roles, "policy": [w for w in self.plan.want if isinstance(w, str)]}
        errors: list[Any] = []
        for name, outputs in asked.items():
            model = self.policy if name == "old" else self.__dict__[name]
            errors += [
                ModelError(f"{name} must give {o!r}, and {type(model).__name__} cannot", expected=", ".join(sorted(model.offers)))
                for o in outputs
                if o not in model.offers and o != "divergence"
            ]
        if errors:
            raise Refused.all(errors)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{type(self).__name__} has no {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        known = fields_of(type(self))
        if name not in known or known[name].kind != "carried":
            fix = f"state between steps is a Memory, or {name} = carried(default); columns belong on the table"
            raise AttributeError(f"{type(self).__name__}.{name} may not be written: {fix}")
        self.__dict__[name] = value

    # -- state
    def models(self) -> dict[str, Model]:
        """The policy and every role that was built."""
        return {n: self.__dict__[n] for n in ("policy", *self.roles)}

    def state(self) -> dict[str, Any]:
        """All that a resume needs."""
        kept = {n: self.__dict__[n] for n, f in fields_of(type(self)).items() if f.kind == "carried"}
        memories = {n: m.state() for n, m in self.memories.items()}
        return {"models": {n: m.state() for n, m in self.models().items()}, "memories": memories, "carried": kept}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """The inverse of `state`."""
        for name, model in self.models().items():
            model.load_state(state["models"][name])
        for name, memory in self.memories.items():
            memory.load_state(state["memories"][name])
        self.__dict__.update(state["carried"])

    # -- chance, drawing, scoring
    def key(self, *purpose: Any) -> torch.Tensor:
        """The key of a draw of this step for this purpose."""
        return chance.mix(self.seed, self.clock, *purpose)

    def contexts(self, n: int | None = None) -> list[Context]:
        """The next contexts of the task's stream."""
        found: list[Context] = self.task.contexts(self.cursor, n or self.prompts)
        self.cursor = self.cursor + len(found)
        return found

    def rollout(
        self, start: Sequence[Context] | Rollouts, n: Any = 1, *, by: Model | None = None, purpose: str = "rollout", **support: Any
    ) -> Rollouts:
        """Draw through the task. Two draws of one step for the same contexts need two purposes."""
        play = getattr(self.task, "play", one_shot)
        drawn: Rollouts = play(by or self.policy, start, n, key=self.key(purpose), max_steps=self.task.max_steps, **support)
        self.ledger.add("sampled_steps", int(drawn.mask.sum()))
        self.ledger.add("episodes", len(drawn))
        return drawn

    def ask(self, batch: Rollouts) -> Rollouts:
        """Ask the judge about the rows that nobody was asked about yet; nobody is paid twice."""
        asked = batch.judged if "judged" in batch else torch.zeros(len(batch), dtype=torch.bool)
        rows = (~asked).nonzero()[:, 0]
        if self.judged_by is None or not len(rows):
            return batch.attach(judged=asked | True)
        self.ledger.add(f"queries:{self.judged_by.name}", len(rows))
        new = batch.select(rows)
        said = self.judged_by.judge(new)
        for name, x in said.columns.items():
            if len(x) != len(new):
                raise FeedbackError(f"{self.judged_by.name} gave {len(x)} values of {name} for {len(new)} rows")
        if len(rows) == len(batch):
            return batch.hear(said).attach(judged=asked | True)
        new = new.hear(said).attach(judged=torch.ones(len(new), dtype=torch.bool))
        return batch.attach(judged=asked).swap(rows, new)

    def score(self, batch: Rollouts) -> Rollouts:
        """Every <role>_<output> that some part asks for and the table lacks: one forward per role."""
        for name, outputs in self.plan.roles.items():
            missing = [o for o in outputs if f"{name}_{o}" not in batch]
            if missing:
                model = self.policy if name == "old" else self.__dict__[name]
                scores = model.score(batch, tuple(self.divergence if o == "divergence" else o for o in missing))
                batch = batch.attach(scored=True, **{f"{name}_{o}": scores[o] for o in missing})
        return batch

    def call(self, part: Part, batch: Rollouts, scores: Scores | None = None) -> Any:
        """A part with its columns: (B,T) arguments are 0 outside the mask; NaN inside it is an error that names the place."""
        stage = "assign" if scores is None else "loss"
        return part(*[self._column(part, column(a, stage, self.behaviour), batch, scores) for a in part.signature.columns])

    def _column(self, part: Part, name: str, batch: Rollouts, scores: Scores | None) -> Any:
        if scores is not None and name in scores:
            value = scores[name]
        elif name in self.memories and self.memories[name].value() is not None:
            value = torch.full((len(batch),), float(self.memories[name].value()), dtype=torch.float64)
        else:
            value = getattr(batch, name)
        if not isinstance(value, torch.Tensor) or not value.is_floating_point() or value.shape != batch.mask.shape:
            return value
        bad = batch.mask & value.isnan()
        if bool(bad.any()):
            row, t = bad.nonzero()[0].tolist()
            where = f"row {row} (context {batch.contexts[row].id!r}), step {t}, written by {Origin(int(batch.origin[row, t])).name}"
            raise FeedbackError(
                f"{part.name} needs {name}, and nobody knows it there", where=where, fix="an objective that does not use it"
            )
        return torch.where(batch.mask, value, 0.0)

    # -- the flow
    def prepare(self) -> None:
        """Once, before step 0: phases, fits."""

    def collect(self, contexts: list[Context]) -> Rollouts:
        """Contexts become rollouts."""
        raise NotImplementedError

    def judge(self, batch: Rollouts) -> Rollouts:
        """Rollouts get feedback."""
        return self.ask(batch)

    def assign(self, batch: Rollouts) -> Rollouts:
        """Feedback becomes credit."""
        return batch

    def improve(self, batch: Rollouts) -> dict[str, float]:
        """Credit becomes a better policy. Returns metrics."""
        return {}

    def evolve(self, batch: Rollouts) -> None:
        """Memories look, roles follow."""
        for name, memory in self.memories.items():
            if name != "ledger":
                memory.observe(batch)
        for name in self.roles:
            rate = fields_of(type(self))[name].default.follow
            if rate:
                self.__dict__[name].follow(self.policy, rate)

    def deploy(self) -> Any:
        """The model that is evaluated and exported."""
        return self.policy

    def produce(self) -> Rollouts:
        """A judged table of this step."""
        self.__dict__["clock"] = self.time
        return self.judge(self.collect(self.contexts()))

    def consume(self, batch: Rollouts) -> tuple[Rollouts, dict[str, float]]:
        """Learn from a judged table; the step is over. Returns the table with credit, and metrics."""
        batch = self.assign(batch)
        metrics = self.improve(batch)
        self.evolve(batch)
        self.time = self.time + 1
        return batch, metrics

    def step(self) -> dict[str, float]:
        """One step of training, its metrics."""
        return self.consume(self.produce())[1]


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


class Offline(OnPolicy):
    """Rows come from what is written down: the task's demonstrations, encoded."""

    asks: ClassVar[tuple[str, ...]] = ("demonstration",)
    unused: ClassVar[tuple[str, ...]] = ("group_size", "temperature", "top_p", "top_k")
    prompts = 128
    group_size = 1
    measure = ()

    def collect(self, contexts: list[Context]) -> Rollouts:
        """The written answers, encoded."""
        answers = [c.meta["completion"] if "completion" in c.meta else c.meta["answer"] for c in contexts]
        return self.policy.encode(contexts, answers)

    def judge(self, batch: Rollouts) -> Rollouts:
        return batch
