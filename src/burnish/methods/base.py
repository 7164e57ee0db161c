"""Methods: roles + options + parts + memories, and stages that pass one growing table on. Read this file first.

    contexts --collect--> Rollouts --judge--> feedback --assign--> advantage --improve--> a better policy --evolve--> memories

A method file is the diff to its parent. A part's arguments are columns of the table; its signature alone says which forwards, roles and
feedback a run needs. Fields are read once; afterwards only `carried` fields and memories change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import FeedbackError, ModelError, Refused
from ..lazy import lazy
from ..memory.base import Ledger, Memory
from ..parts import Part
from ..rollouts.one_shot import one_shot
from ..types.context import Context, Origin
from ..types.limits import Positive
from .fields import Role, carried, fields_of, settings
from .plan import column, gives, planned

if TYPE_CHECKING:
    import torch

    from ..feedback.judge import Judge
    from ..models.base import Model
    from ..types import chance
    from ..types.table import Rollouts, Scores
else:
    torch, chance = map(lazy, ("torch", "burnish.types.chance"))

Build = Callable[[str], "Model"]  # a model by its name or path


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
