"""Methods and parts as plain data: the one description that list, show, help and scripts read."""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import Refused, nearest
from ..memory.base import Memory
from ..methods.base import Method
from ..methods.fields import WEIGHED, Field, Role, choices, choices_of, fields_of, settings
from ..methods.plan import planned
from ..methods.registry import family_of, method, name_of, names, parent_of
from ..models.options import Learner
from ..parts import SLOTS, Over, Part, find, folder, read, user_path
from ..training.request import RunOptions, settable

IN_ORDER = ("keep", "reward", "credit", "shape", "objective", "penalty", "divergence", "critic_objective")  # as they are called
SHORT = {
    "Positive": "int > 0",
    "Count": "int >= 0",
    "Share": "float in [0, 1]",
    "Size": "float > 0",
    "Reduction": "token_mean|sequence_mean|sequence_sum|constant:LENGTH",
    "Model": "frozen|copy|MODEL",
}
GROUPS = ("run", "learner", "method", "slot", "part", "role", "memory")
PACKAGE = Path(__file__).parents[1]


def short_type(type_: str) -> str:
    """A type as it stands behind a flag."""
    return SHORT.get(type_) or "|".join(choices_of(type_)) or type_


def parts_in(value: Any) -> list[Part]:
    """The parts in a slot, however they are held."""
    held = [getattr(x, "function", x) if isinstance(x, Over) else x for x in (value if isinstance(value, tuple) else (value,))]
    return [p for p in held if isinstance(p, Part)]


def word_of(part: Part) -> str:
    """A part as it is written on a command line: clip:low=0.1."""
    name = part.name if part.path.is_relative_to(PACKAGE) else f"{part.path}:{part.name}"
    said = dict(part.options) | ({"weight": part.weight} if part.weight != 1.0 else {})
    return ":".join([name, *(f"{n}={v}" for n, v in said.items())])


def types_of(cls: type[Method]) -> dict[str, str]:
    """Every option that may be said without a dot, with its type."""
    known = {n: f.type for c in (RunOptions, Learner) for n, f in fields_of(c).items()}
    return known | {n: f.type for n, f in settable(cls).items()}


def options_of(cls: type[Method]) -> list[dict[str, Any]]:
    """Every option that can be set: name, type, default, help and group."""
    found = [_option(f, "run") for f in fields_of(RunOptions).values()]
    found += [_option(f, "learner") for f in fields_of(Learner).values()]
    for field in settable(cls).values():
        found += _options_in(field)
    return sorted(found, key=lambda o: GROUPS.index(o["group"]))


def _option(field: Field, group: str, **other: Any) -> dict[str, Any]:
    return {"name": field.name, "type": short_type(field.type), "default": field.default, "help": field.help, "group": group, **other}


def _options_in(field: Field) -> list[dict[str, Any]]:
    if isinstance(field.default, Role):
        return [_option(field, "role", default=field.default.word)]
    if isinstance(field.default, Memory):
        state, doc = field.default.state(), (inspect.getdoc(type(field.default)) or "").split("\n")[0]
        return [_dotted(f"{field.name}.{n}", type(v).__name__, v, doc, "memory") for n, v in state.items()]
    if field.name not in SLOTS:
        return [_option(field, "method")]
    held = parts_in(field.default)
    words = [word_of(p) for p in held]
    several = field.kind == "parts"
    slot = _option(field, "slot", type="PART,..." if several else "PART", default=words if several else next(iter(words), None))
    options = [_dotted(f"{field.name}.{o}", p.signature.kinds[o], v, f"of {p.name}", "part") for p in held for o, v in p.settings.items()]
    weighed = field.name in WEIGHED and len(held) == 1
    return [slot, *options, *([_dotted(f"{field.name}.weight", "float", held[0].weight, f"of {held[0].name}", "part")] if weighed else [])]


def _dotted(name: str, type_: str, default: Any, help_: str, group: str) -> dict[str, Any]:
    return {"name": name, "type": short_type(type_), "default": default, "help": help_, "group": group}


def described(cls: type[Method], *, options: bool = True) -> dict[str, Any]:
    """A method for scripts; these keys are stable."""
    values = settings(cls, {})
    roles = planned(cls, values, frozenset(cls.asks))[1]
    slots = {s: [p.name for p in parts_in(values.get(s))] for s in SLOTS if s in values}
    if "critic" not in roles:
        slots.pop("critic_objective", None)
    return {
        "name": name_of(cls),
        "kind": cls.kind,
        "family": family_of(cls),
        "parent": parent_of(cls),
        "paper": vars(cls).get("paper", ""),
        "needs": list(cls.asks),
        "roles": {n: values[n].word for n in roles},
        "options": options_of(cls) if options else [],
        "parts": {s: n for s, n in slots.items() if n},
        "doc": documented(cls.__doc__),
        "claim": claim(name_of(cls)),
    }


def described_part(slot: str, part: Part) -> dict[str, Any]:
    """A part for scripts, with the keys of a method."""
    said = part.signature
    papers = re.findall(r"arXiv \d{4}\.\d{4,5}", said.doc)
    options = [_dotted(n, said.kinds[n], v, "", "part") for n, v in said.options.items()]
    return {
        "name": part.name,
        "kind": "part",
        "family": slot,
        "parent": None,
        "paper": ", ".join(dict.fromkeys(papers)),
        "needs": list(said.columns),
        "roles": {},
        "options": options,
        "parts": {},
        "doc": documented(said.doc),
        "claim": claim(part.name),
    }


def documented(doc: str | None) -> str:
    """A docstring without its indentation."""
    return inspect.cleandoc(doc or "")


def first_sentence(doc: str) -> str:
    """The first sentence of a docstring, on one line."""
    line = " ".join(doc.split("\n\n")[0].split())
    return re.split(r"(?<=[a-z0-9)\]])\. (?=[A-Z`a])", line)[0].rstrip(".") + "." if line else ""


def claim(name: str) -> dict[str, Any]:
    """What a reproduction of the method's claim said; `none` where nobody has tried."""
    for root in (PACKAGE / "claims", Path("claims")):
        path = root / "results" / f"{name}.json"
        if path.is_file():
            found = json.loads(path.read_text(encoding="utf-8"))
            return {"state": str(found.get("state") or found.get("verdict") or "unknown")}
    return {"state": "none"}


@cache
def slots_of(name: str) -> tuple[str, ...]:
    """The slots that a part of this name can stand in."""
    return tuple(slot for slot in SLOTS if name in folder(SLOTS[slot]) and name in choices(slot))


def every_method() -> dict[str, type[Method]]:
    """All registered methods by name."""
    return {name: method(name) for name in names()}


def meant(word: str) -> type[Method] | list[tuple[str, Part]]:
    """A method by its name, or the parts of that name with their slots. Raises Refused naming the nearest."""
    if word in names():
        return method(word)
    if own := user_path(word):
        path, name = own
        return [("own", Part(path, name))] if name in read(path) else method(word)
    if slots := slots_of(word):
        paths: Mapping[Path, str] = {find(SLOTS[s], word).path: s for s in reversed(slots)}
        return [(slot, find(SLOTS[slot], word)) for slot in reversed(list(paths.values()))]
    known = [*names(), *(n for f in set(SLOTS.values()) for n in folder(f))]
    raise Refused(f"there is no method or part {word!r}; {nearest(word, known)}", fix="burnish list, or burnish list --parts")


def method_source(cls: type[Method]) -> str:
    """The text of a method's class."""
    return textwrap.dedent(inspect.getsource(cls)).rstrip()
