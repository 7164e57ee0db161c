"""The fields of a method: what can be set, of which type, with which default and help. Read from the class, without torch."""

from __future__ import annotations

import copy
import inspect
import itertools
import linecache
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..errors import BurnishError, Refused, nearest
from ..memory.base import Memory
from ..parts import SLOTS, Over, Part, find, folder, over, use, user_path
from ..types.limits import NAMES


@dataclass(frozen=True)
class Role:
    """Another model in the method. `word` says what it is until the user says otherwise: "frozen" (the policy as it was at the start),
    "copy" (the same, trainable), or the name of a model. `follow`: how far it moves toward the policy after each step."""

    word: str
    follow: float = 0.0


@dataclass(frozen=True)
class Carried:
    """State between steps that is no memory: written by stages, saved and restored."""

    default: Any


WEIGHED = ("objective", "penalty", "critic_objective")  # slots whose parts are terms of a loss; a weight has no effect elsewhere


def role(word: str, *, follow: float = 0.0) -> Any:
    """`reference: Model = role("frozen")`."""
    return Role(word, follow)


def carried(default: Any) -> Any:
    """`solved: int = carried(0)`."""
    return Carried(default)


@dataclass(frozen=True)
class Field:
    """One field: an option, a slot of parts, a role or a memory."""

    name: str
    kind: str  # option, part, parts, role, memory, carried
    type: str
    default: Any
    help: str
    owner: str


def fields_of(method: Any) -> dict[str, Field]:
    """Every field of a method class, parents first, with the child's default and help."""
    return _fields_of(method)


@cache
def _fields_of(method: type) -> dict[str, Field]:
    found: dict[str, Field] = {}
    for owner in reversed(method.__mro__):
        if owner is object or not owner.__module__:
            continue
        notes, said = _comments(owner), inspect.get_annotations(owner)
        for name, default in vars(owner).items():
            before = found.get(name)
            if not _is_field(name, default, said.get(name, "")) or (before is None and _is_constant(name, owner)):
                continue
            kind = before.kind if before and before.kind in ("parts", "part") else _kind(name, default)
            type_ = _named(said[name]) if name in said else before.type if before else type(default).__name__
            found[name] = Field(name, kind, type_, default, notes.get(name, before.help if before else ""), owner.__name__)
    return found


def _is_field(name: str, default: Any, annotation: Any) -> bool:
    if name.startswith("_") or "ClassVar" in str(annotation):
        return False
    if isinstance(default, Part | Over | Role | Carried | Memory):
        return True
    return not (callable(default) or isinstance(default, property | classmethod | staticmethod))


def _is_constant(name: str, owner: type) -> bool:
    """Does a parent declare it as a ClassVar? A child that gives it another value need not say so again."""
    return any("ClassVar" in str(inspect.get_annotations(parent).get(name, "")) for parent in owner.__mro__[1:])


def _named(annotation: Any) -> str:
    """An annotation as text, whether or not its file has `from __future__ import annotations`."""
    if isinstance(annotation, str):
        return annotation
    known = next((n for n, x in NAMES.items() if x is annotation), None)
    text = annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")
    return known or text


def _kind(name: str, default: Any) -> str:
    if name in SLOTS:
        return "parts" if isinstance(default, tuple) else "part"
    kinds: dict[type, str] = {Role: "role", Carried: "carried", Memory: "memory"}
    return next((word for kind, word in kinds.items() if isinstance(default, kind)), "option")


_NOTE = re.compile(r"^    (\w+)\s*(?::[^=]+)?=.*?#\s*(.+)$")


def _comments(owner: type) -> dict[str, str]:
    """The comment behind each field in the source, as its help."""
    return {m[1]: m[2] for line in _lines(owner) if (m := _NOTE.match(line))}


def _lines(owner: type) -> list[str]:
    """The source of a class. `inspect` parses whole files, which is slow for lists and help: it is asked for classes in functions only."""
    file = getattr(sys.modules.get(owner.__module__), "__file__", None)
    whole = linecache.getlines(file) if file else []
    start = next((i for i, line in enumerate(whole) if re.match(rf"class {owner.__name__}\b", line)), None)
    if start is None or "." in owner.__qualname__:
        try:
            return inspect.getsource(owner).splitlines()
        except (OSError, TypeError):
            return []
    return list(itertools.takewhile(lambda line: line[0] in " \t\n)#", whole[start + 1 :]))


def settings(method: type, changes: Mapping[str, Any]) -> dict[str, Any]:
    """A value for every field: defaults with these changes. Raises Refused with all mistakes at once.

    Parts may be given by name ("ordinal", "clip:low=0.1"), several parted by commas where a slot takes several; `objective.low` sets
    an option of the part in a slot; "none" empties a slot. Roles take a model, a name or a path."""
    fields, errors = fields_of(method), list[BurnishError]()
    values = {n: copy.deepcopy(f.default.default if isinstance(f.default, Carried) else f.default) for n, f in fields.items()}
    for key, value in sorted(changes.items(), key=lambda item: "." in item[0]):
        name, _, option = key.partition(".")
        if name not in fields or fields[name].kind == "carried":
            errors.append(
                Refused(f"{method.__name__} has no option {key!r}; {nearest(name, (n for n in fields if fields[n].kind != 'carried'))}")
            )
            continue
        try:
            values[name] = _with_option(fields[name], values[name], option, value) if option else _value(fields[name], value, values[name])
        except BurnishError as error:
            errors.append(error)
    if errors:
        raise Refused.all(errors)
    return values


def _value(field: Field, value: Any, default: Any) -> Any:
    if field.name == "divergence":
        return _divergence(value, default)
    if field.kind in ("part", "parts"):
        parts = _parts(field.name, value, default)
        if field.kind == "parts":
            return parts
        if len(parts) > 1:
            raise Refused(f"{field.name} takes one part", seen=", ".join(p.name for p in parts))
        return parts[0] if parts else None
    if field.kind == "role" and not isinstance(value, str | Role) and not hasattr(value, "snapshot"):
        raise Refused(f"{field.name} = {value!r}: no model", expected=in_words("Model"))
    if field.kind == "role":
        return Role(value, field.default.follow if isinstance(field.default, Role) else 0.0) if isinstance(value, str) else value
    if field.kind == "memory":
        raise Refused(f"{field.name} is a memory; set what is in it, as in --{field.name}.{next(iter(default.state()), 'x')}")
    return checked(field.name, field.type, value)


def _divergence(value: Any, default: Any) -> Any:
    if value is None or value == "none":
        return None
    if isinstance(value, Over):
        return value
    part = value if isinstance(value, Part) else _part("divergence", str(value), default.function if isinstance(default, Over) else None)
    if "p" not in part.signature.columns:
        raise Refused(f"{part.name} is no divergence of distributions", fix=f"--penalty {part.name}")
    return over(part, to=default.to if isinstance(default, Over) else "reference")


def _parts(slot: str, value: Any, default: Any = None) -> tuple[Part, ...]:
    if value is None or value == "none" or value == ():
        return ()
    if isinstance(value, Part):
        return (value,)
    words = value if isinstance(value, list | tuple) else [w.strip() for w in str(value).split(",")]
    return tuple(w if isinstance(w, Part) else _part(slot, w, default) for w in words)


def choices(slot: str) -> list[str]:
    """Names of the parts that make sense in a slot: where two slots share a folder, the columns tell them apart."""
    columns = {n: find(SLOTS[slot], n).signature.columns for n in sorted(folder(SLOTS[slot]))}
    marks = {"divergence": ("p", True), "penalty": ("p", False), "critic_objective": ("value", True), "objective": ("value", False)}
    mark, has = marks.get(slot, ("", False))
    return [n for n, c in columns.items() if not mark or (mark in c) == has]


def _part(slot: str, word: str, default: Any = None) -> Part:
    """`clip`, `clip:low=0.1:high=0.3` or `my_file.py:mine`. A part that the slot holds already keeps the options that it has there."""
    head, *said = word.split(":")
    if head.endswith(".py") and said:
        head = f"{head}:{said.pop(0)}"
    if not user_path(head) and head not in folder(SLOTS[slot]):
        raise Refused(f"{slot} has no {head!r}; {nearest(head, choices(slot))}", expected=", ".join(choices(slot)))
    part = find(SLOTS[slot], head)
    held = default if isinstance(default, tuple) else (default,)
    part = next((p for p in held if isinstance(p, Part) and (p.path, p.name) == (part.path, part.name)), part)
    for one in said:
        option, _, text = one.partition("=")
        part = _option(slot, part, option, text)
    return part


def _option(slot: str, part: Part, option: str, value: Any) -> Part:
    if option == "weight" and slot in WEIGHED:
        return use(part, weight=checked("weight", "float", value), **part.options)
    kinds = part.signature.kinds
    if option not in kinds:
        raise Refused(f"{part.name} has no option {option!r}; {nearest(option, [*kinds, *(['weight'] if slot in WEIGHED else [])])}")
    return use(part, weight=part.weight, **{**part.options, option: checked(f"{part.name}.{option}", kinds[option], value)})


def _with_option(field: Field, value: Any, option: str, given: Any) -> Any:
    """`objective.low=0.1`, `penalty.weight=0`, `kl_weight.target=3`."""
    if isinstance(value, Memory):
        state = value.state()
        if option not in state:
            raise Refused(f"{field.name} has no {option!r}; {nearest(option, state)}")
        value.load_state({option: checked(f"{field.name}.{option}", type(state[option]).__name__, given)})
        return value
    if isinstance(value, Over) and isinstance(value.function, Part):
        return Over(value.name, _option(field.name, value.function, option, given), value.to)
    if isinstance(value, Part):
        return _option(field.name, value, option, given)
    if isinstance(value, tuple) and value and field.kind == "parts":
        everyone = option == "weight" and field.name in WEIGHED
        holders = [p for p in value if everyone or option in p.signature.kinds]
        if len(holders) == 1:
            return tuple(_option(field.name, p, option, given) if p is holders[0] else p for p in value)
        listed, fix = ", ".join(p.name for p in value), f"--{field.name} {','.join(f'{p.name}:{option}={given}' for p in holders)}"
        if holders:
            raise Refused(f"{field.name}.{option} could be of any of {listed}", fix=fix)
        raise Refused(f"{field.name} ({listed}) has no option {option!r}; {nearest(option, [o for p in value for o in p.signature.kinds])}")
    raise Refused(f"{field.name} is {value!r}: there is no part in it to set {option!r} of", fix=f"--{field.name} NAME first")


WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "Positive": "a whole number from 1 on",
    "Count": "a whole number from 0 on",
    "Share": "a number from 0 to 1",
    "Size": "a number above 0",
    "Part | None": "the name of a part, or none",
    "Over | None": "the name of a divergence, or none",
    "Parts": "names of parts, parted by commas, or none",
    "Model": "frozen, copy, or the name or folder of a model",
    "Reduction": "token_mean, sequence_mean, sequence_sum, or constant with a length",
}


def choices_of(type_: str) -> tuple[str, ...]:
    """The words that a Literal allows; none for other types."""
    found = re.fullmatch(r"Literal\[(.*)\]", type_)
    return tuple(w.strip(" '\"") for w in found[1].split(",")) if found else ()


def in_words(type_: str) -> str:
    """A type as a person says it."""
    return WORDS.get(type_) or (f"one of {', '.join(choices_of(type_))}" if choices_of(type_) else type_)


def checked(name: str, type_: str, value: Any) -> Any:
    """A value as the type that its annotation names, or Refused with both. Text from a command line is read; nothing is guessed."""
    from pydantic import TypeAdapter, ValidationError

    why = "true and false are no numbers" if isinstance(value, bool) and not {"bool", "Any"} & set(re.findall(r"\w+", type_)) else ""
    try:
        read = TypeAdapter(eval(type_, {**NAMES})).validate_python(_listed(type_, value))  # annotations of our own and user classes
        why = "this is no number" if isinstance(read, float) and read != read else why
    except (NameError, SyntaxError) as error:
        raise Refused(f"the type of {name} cannot be read: {type_}", fix="use int, float, str, bool, tuple or Literal") from error
    except ValidationError as error:
        why = why or "; ".join(dict.fromkeys(e["msg"] for e in error.errors()))
    if why:
        near = nearest(value, choices_of(type_)) if choices_of(type_) and isinstance(value, str) else ""
        raise Refused(f"{name} = {value!r}: {near if near.startswith('did') else why}", expected=in_words(type_))
    return read


def _listed(type_: str, value: Any) -> Any:
    """`constant:16` on a command line is the pair that Reduction also takes."""
    if type_ == "Reduction" and isinstance(value, str) and ":" in value:
        return tuple(value.split(":", 1))
    return value
