"""What a person asked for, resolved: every option typed and checked, everything impossible refused, before torch is loaded."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from ..data import jsonl
from ..errors import BurnishError, Refused, nearest
from ..feedback.function import Functions
from ..feedback.judge import Judge, Truth
from ..methods.base import Method
from ..methods.fields import Field, Role, checked, fields_of, settings
from ..methods.plan import Plan, gives, planned
from ..methods.registry import method as find_method
from ..methods.registry import name_of
from ..models.load import locate, reads_compact
from ..models.options import Learner
from ..parts import function, user_path
from ..tasks.registry import TASKS
from ..tasks.streams import Rows, TextStream
from ..types.limits import Count, Positive


@dataclass(frozen=True)
class RunOptions:
    """What a run needs beside its method and its learner."""

    task: str = "mix"  # a task, or the path of a .jsonl file with prompts
    model: str = "tiny"  # an embedded model, a folder, smollm2, or hf:OWNER/NAME
    judge: str = "truth"  # truth, or my_file.py:my_function (several parted by commas)
    steps: Positive = 100  # training steps
    seed: Count = 0  # every draw follows from it
    out: str = ""  # the run folder; empty: runs/<method>-<task>-<number>
    level: Positive = 1  # difficulty of the task
    style: Literal["auto", "compact", "words"] = "auto"  # how problems are worded; auto: as the model reads
    max_steps: Count = 0  # tokens an answer may take; 0: what the task says
    columns: str = ""  # names in a file, as in prompt=question,completion=answer
    eval_size: Positive = 512  # held-out contexts of an evaluation
    eval_every: Count = 0  # steps between evaluations; 0: before and after only
    save_every: Positive = 20  # steps between checkpoints
    keep_checkpoints: Positive = 2  # checkpoints that stay on disk
    show_every: Positive = 10  # steps between tables of rollouts kept for reading
    threads: Count = 0  # of torch; 0: all cores, at most 4 for small models. The bits of a run belong to its number of threads
    dtype: Literal["float32", "float64", "bfloat16"] = "float32"  # of the weights
    lora: Count = 0  # rank of adapters; 0 trains the weights


@dataclass(frozen=True)
class Request:
    """A checked request: `options`, `learner`, the method's class, its changes and settings, task, judge, plan."""

    method: type[Method]
    name: str
    options: RunOptions
    learner: Learner
    changes: Mapping[str, Any]
    values: Mapping[str, Any]
    task: Any
    judge: Judge | None
    plan: Plan
    roles: tuple[str, ...]
    said: Mapping[str, Any] = field(default_factory=dict)


def resolve(word: str, said: Mapping[str, Any], *, judge: Callable[..., Any] | list[Callable[..., Any]] | None = None) -> Request:
    """Check everything. Raises Refused with all mistakes at once, each with its fix.

    `said` are options of the run, the learner and the method together; `judge` is a function given in Python."""
    errors: list[BurnishError] = []
    cls = find_method(word)
    mine = {"options": RunOptions, "learner": Learner}
    groups = {n: {k: v for k, v in said.items() if k in fields_of(c)} for n, c in mine.items()}
    rest = {k: v for k, v in said.items() if not any(k in g for g in groups.values())}
    errors += [_unknown(cls, k) for k in rest if k.partition(".")[0] not in settable(cls)]
    changes = {k: v for k, v in rest.items() if k.partition(".")[0] in settable(cls)}
    checked_: dict[str, Any] = {n: _checked(c, groups[n], errors) for n, c in mine.items()}
    options, learner = checked_["options"], checked_["learner"]
    changes = _sound(cls, changes, errors)
    values = settings(cls, changes)
    model = _collect(errors, lambda: locate(options.model))
    roles_said = [v.word for v in values.values() if isinstance(v, Role) and v.word not in ("frozen", "copy")]
    for name in roles_said:
        _collect(errors, lambda name=name: locate(name))  # type: ignore[misc]
    task = _collect(errors, lambda: _task(options))
    asked = _collect(errors, lambda: _judge(options, task, judge)) if task is not None else None
    plan = _collect(errors, lambda: planned(cls, values, gives(task, asked))) if task is not None else None
    if errors or plan is None or model is None:
        raise Refused.all(errors)
    made, roles = plan
    name = word if user_path(word) else name_of(cls)
    return Request(cls, name, options, learner, changes, values, task, asked, made, roles, dict(said))


def _sound(cls: type[Method], changes: Mapping[str, Any], errors: list[BurnishError]) -> dict[str, Any]:
    """The changes that can be made; the others go to errors, so that one mistake hides no other."""
    sound: dict[str, Any] = {}
    for key in sorted(changes, key=lambda k: "." in k):
        tried = {**sound, key: changes[key]}
        sound = tried if _collect(errors, lambda tried=tried: settings(cls, tried)) is not None else sound  # type: ignore[misc]
    return sound


def settable(cls: type[Method]) -> dict[str, Field]:
    """Fields of a method that a person may set."""
    return {n: f for n, f in fields_of(cls).items() if f.kind != "carried"}


def _unknown(cls: type[Method], key: str) -> Refused:
    known = [*(f.name for f in fields(RunOptions)), *(f.name for f in fields(Learner)), *settable(cls)]
    return Refused(f"there is no option {key!r}; {nearest(key, known)}", fix=f"burnish show {name_of(cls)} lists them all")


def _collect(errors: list[BurnishError], make: Callable[[], Any]) -> Any:
    try:
        return make()
    except BurnishError as error:
        errors.append(error)
        return None


def _checked(cls: type, said: Mapping[str, Any], errors: list[BurnishError]) -> Any:
    found = {n: _collect(errors, lambda n=n, v=v: checked(n, fields_of(cls)[n].type, v)) for n, v in said.items()}  # type: ignore[misc]
    return cls(**{n: v for n, v in found.items() if v is not None})


def _task(options: RunOptions) -> Any:
    if options.task in TASKS:
        style = options.style if options.style != "auto" else "compact" if reads_compact(options.model) else "words"
        budget = options.max_steps or (0 if style == "compact" else 32)
        return TextStream(TASKS[options.task](), level=options.level, seed=options.seed, style=style, max_steps=budget)
    path = Path(options.task).expanduser()
    if path.suffix != ".jsonl":
        raise Refused(
            f"there is no task {options.task!r}; {nearest(options.task, TASKS)}", fix="or give the path of a .jsonl file with prompts"
        )
    return Rows(jsonl.rows(path, jsonl.mapping(options.columns)), name=path.stem, seed=options.seed, max_steps=options.max_steps or 64)


def _judge(options: RunOptions, task: Any, given: Any) -> Judge | None:
    if given is not None:
        return given if hasattr(given, "judge") else Functions(given if isinstance(given, list) else [given])
    if options.judge != "truth":
        return Functions([_function(w.strip()) for w in options.judge.split(",")])
    return Truth(task) if "reward" in task.gives else None


def _function(word: str) -> Callable[..., Any]:
    own = user_path(word)
    if own is None:
        raise Refused(f"--judge {word!r} names no function", expected="truth, or my_file.py:my_function")
    path, name = own
    try:
        return function(path, name)
    except AttributeError as error:
        raise Refused(f"there is no {name!r} in the file", where=str(path)) from error


def from_toml(path: Path) -> dict[str, Any]:
    """Options from a TOML file; tables become dotted names: [objective] low = 0.1. Raises Refused naming file and line."""
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Refused(f"the file cannot be read: {error.strerror}", where=str(path)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refused(f"the file is not TOML: {error}", where=str(path)) from error
    out: dict[str, Any] = {}
    for key, value in read.items():
        key = key.replace("-", "_")
        if isinstance(value, dict):
            out |= {key if n == "name" else f"{key}.{n}": v for n, v in value.items()}
        else:
            out[key] = value
    return out


def line_of(path: Path, key: str) -> int | None:
    """The line of a TOML file where a key stands, for error messages."""
    last = re.compile(rf"^\s*{re.escape(key.rpartition('.')[2]).replace('_', '[-_]')}\s*=")
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if last.match(line):
            return number
    return None
