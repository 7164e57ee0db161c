"""What the parts of a method ask for, read from their signatures: forwards, roles, refusals. No torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import BurnishError, Refused, nearest
from ..memory.base import Memory
from ..parts import SLOTS, Over, Part, folder, read
from ..types.context import SAMPLED
from .fields import fields_of, settings

LIVE = ("logp", "nll", "entropy", "value", "hidden", "divergence")  # bare, these are live inside the loss and `old_` before it
BEFORE = ("reward", "keep", "credit", "shape")  # slots that run before the loss


@dataclass
class Plan:
    """Live outputs of each learner, columns scored by each role (in order), and the unit that the loss may not be cut through."""

    want: tuple[Any, ...] = ("logp",)
    critic_want: tuple[Any, ...] = ()
    roles: dict[str, list[str]] = field(default_factory=dict)
    unit: str = "row"


def column(name: str, stage: str, behaviour: str) -> str:
    """The column that an argument stands for, before the loss ("assign") or in it ("loss")."""
    if name.startswith("behaviour_"):
        return f"{behaviour}_{name.removeprefix('behaviour_')}"
    return f"old_{name}" if stage == "assign" and name in LIVE else name


def role_of(name: str, roles: Sequence[str]) -> str | None:
    """The role that must be scored for this column, if any."""
    role, _, output = name.rpartition("_")
    return role if role in {*roles, "old"} and output in (*LIVE, "distribution") else None


class Planner:
    """Reads the slots of a method once and collects every refusal."""

    def __init__(self, roles: Sequence[str], given: set[str], behaviour: str, divergence: Over | None):
        self.role_names, self.known, self.behaviour, self.divergence = roles, set(given), behaviour, divergence
        self.errors: list[BurnishError] = []
        self.scored: dict[str, list[str]] = {}
        self.live: dict[str, list[str]] = {"policy": [], "critic": []}
        self.unit = "row"

    def read(self, slots: Mapping[str, Sequence[Part]]) -> Plan:
        """The plan. Raises Refused with all that cannot be given."""
        for slot in (*BEFORE, *(s for s in slots if s not in BEFORE)):
            if slot == "critic_objective" and "critic" not in self.scored:
                continue
            for part in slots.get(slot, ()):
                self._part(slot, part)
        if self.errors:
            raise Refused.all(self.errors)
        ordered = dict(sorted(self.scored.items(), key=lambda item: item[0] == "old"))  # old last: its divergence looks at the others
        return Plan(self._wanted("policy") or ("logp",), self._wanted("critic"), ordered, self.unit)

    def _part(self, slot: str, part: Part) -> None:
        signature = part.signature
        if "p" in signature.columns:
            self._refuse(f"{slot} {part.name} compares distributions", f"--divergence {part.name} --{slot} exact")
            return
        stage = "assign" if slot in BEFORE else "loss"
        learner = "critic" if slot == "critic_objective" else "policy"
        for argument in signature.columns:
            self._argument(slot, part, column(argument, stage, self.behaviour), stage, learner)
        made = {n or ("advantage" if slot in ("credit", "shape") else "") for n in signature.returns} - {""}
        self.known |= made if slot in BEFORE else set()
        shapes = set(signature.returns.values())
        self.unit = "group" if "Groups" in shapes else "pair" if "Pairs" in shapes and self.unit == "row" else self.unit

    def _argument(self, slot: str, part: Part, name: str, stage: str, learner: str) -> None:
        if name.rpartition("_")[2] == "divergence" and self.divergence is None:
            choices = [n for n, path in folder("divergences").items() if "p" in read(path)[n].columns]
            self._refuse(f"{slot} {part.name} needs a divergence", f"--divergence with one of {', '.join(choices)}")
        elif stage == "loss" and name in LIVE:
            self.live[learner].append(name)
            self._other_side(name)
        elif name == "advantage" and name not in self.known:
            self._refuse(
                f"{slot} {part.name} needs an advantage, and no credit is given", "--credit with one of " + ", ".join(folder("credit"))
            )
        elif name in self.known:
            pass
        elif (role := role_of(name, self.role_names)) is not None:
            if slot != "measure":  # what is only reported costs no forward of its own: it is reported where it is there
                self._score(role, name.removeprefix(f"{role}_"))
        else:
            what = f"{slot} {part.name} needs {name!r}: no judge, role or earlier part gives it"
            self._refuse(what, nearest(name, self.known), seen="given here: " + ", ".join(sorted(self.known - set(SAMPLED))))

    def _score(self, role: str, output: str) -> None:
        if output == "divergence":
            self._other_side(output)
        outputs = self.scored.setdefault(role, [])
        if output not in outputs:
            outputs.append(output)

    def _other_side(self, output: str) -> None:
        """A divergence to a role needs that role's distributions, scored first."""
        if output == "divergence" and self.divergence is not None and self.divergence.to:
            self._score(self.divergence.to, "distribution")

    def _wanted(self, learner: str) -> tuple[Any, ...]:
        return tuple(self.divergence if n == "divergence" else n for n in dict.fromkeys(self.live[learner]))

    def _refuse(self, what: str, fix: str, seen: str | None = None) -> None:
        self.errors.append(Refused(what, fix=fix, seen=seen))


def gives(task: Any, judge: Any) -> frozenset[str]:
    """What a task and a judge together can say."""
    said: frozenset[str] = judge.gives if judge is not None else frozenset()
    return said | (task.gives & {"demonstration"})


def planned(method: Any, values: Mapping[str, Any], given: frozenset[str]) -> tuple[Plan, tuple[str, ...]]:
    """The plan of a method with these settings, and the roles it builds. Raises Refused with every impossibility at once. No torch."""

    def declared(name: str) -> set[str]:
        return {x for c in method.__mro__ for x in vars(c).get(name, ()) if isinstance(vars(c).get(name), tuple)}

    roles = [n for n, f in fields_of(method).items() if f.kind == "role"]
    slots = {s: _listed(values.get(s)) for s in SLOTS if s != "divergence"}
    slots["penalty"] = [p for p in slots["penalty"] if p.weight]  # no forward for what has no effect
    known = {*SAMPLED, "judged", "length", "text", *given, *declared("attaches")}
    known |= {"step_reward"} if "reward" in known else set()
    known |= {n for n, v in values.items() if isinstance(v, Memory) and v.value() is not None}
    planner = Planner(roles, known, values.get("behaviour", "sampled"), values.get("divergence"))
    planner.errors += [_missing(method, ask, given) for ask in method.asks if ask not in known]
    planner.errors += _contradictions(method, values, slots)
    made = planner.read(slots)
    needed = {*made.roles, *declared("needs")}
    return made, tuple(r for r in roles if r in needed)


def _missing(method: Any, ask: str, given: frozenset[str]) -> Refused:
    says = ", ".join(sorted(given)) or "nothing"
    fix = {"reward": "--judge my_file.py:my_function, or a task with a verifier", "demonstration": "a task or file with reference answers"}
    return Refused(f"{method.__name__} learns from {ask!r}, and nobody here gives it", seen=f"given: {says}", fix=fix.get(ask, ""))


def _contradictions(method: Any, values: Mapping[str, Any], slots: Mapping[str, Sequence[Part]]) -> list[Refused]:
    """Settings that cannot mean anything together."""
    errors = []
    grouped = [p.name for s in ("reward", "keep", "credit") for p in slots.get(s, ()) if "group" in p.signature.columns]
    if grouped and values.get("group_size", 2) < 2:
        what = f"{grouped[0]} compares the answers to one context, and there is one answer each"
        errors.append(Refused(what, seen="group_size = 1", expected="2 or more", fix="--group-size 8, or another --credit"))
    if "temperature" in values and not values["temperature"] > 0:
        what = "a policy gradient needs draws, and a greedy policy draws nothing"
        errors.append(Refused(what, seen=f"temperature = {values['temperature']}", expected="above 0", fix="--temperature 1"))
    if "objective" in values and values["objective"] is None:
        errors.append(Refused(f"{method.__name__} has no objective", fix="--objective NAME"))
    return errors


def _listed(value: Any) -> list[Part]:
    return [p for p in (value if isinstance(value, tuple) else (value,)) if p is not None]


def _plain(value: Any) -> Any:
    """A field's value as it acts: options that were said and options by default are alike."""
    if isinstance(value, Part):
        return value.path, value.name, value.settings, value.weight
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return value.state() if isinstance(value, Memory) else value


def without_effect(method: Any, changes: Mapping[str, Any], values: Mapping[str, Any], roles: Sequence[str]) -> dict[str, Refused]:
    """Options that were set and that nothing reads: a role that no part asks for, what belongs to it, a memory or a behaviour that no
    part looks at. By option."""
    read = {c for slot in SLOTS if slot not in ("divergence", "measure") for p in _listed(values.get(slot)) for c in p.signature.columns}
    asked = {
        "divergence": any(c.endswith("divergence") for c in read),
        "behaviour": any(c.startswith("behaviour_") for c in read),
        **{n: n in read for n, v in values.items() if isinstance(v, Memory) and v.value() is not None},
    }
    known = {n: n in roles for n in ("reference", "critic")}
    found = {}
    usual = settings(method, {})
    for option in changes:
        name = option.partition(".")[0]
        if _plain(values[name]) == _plain(usual[name]):  # said, and as it is anyway
            continue
        owner = next((r for r in known if name == r or name.startswith(f"{r}_")), name)
        if not {**asked, **known}.get(owner, True):
            found[option] = Refused(f"{option} has no effect: no part asks for {owner}", fix="leave it out, or choose a part that does")
    return found
