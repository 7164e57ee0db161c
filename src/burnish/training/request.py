"""What a person asked for, resolved: every option typed and checked, everything impossible refused, before torch is loaded."""

from __future__ import annotations

import difflib
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
from ..methods.plan import Plan, gives, planned, without_effect
from ..methods.registry import method as find_method
from ..methods.registry import name_of, names
from ..models.load import locate, reads_compact
from ..models.options import Learner
from ..parts import Part, function, user_path
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


Origin = Callable[[str], str]  # where an option was said, as file:line; empty for a flag


def resolve(
    word: str,
    said: Mapping[str, Any],
    *,
    judge: Callable[..., Any] | list[Callable[..., Any]] | None = None,
    origin: Origin = lambda key: "",
) -> Request:
    """Check everything. Raises Refused with all mistakes at once, each with its fix and, where `origin` knows it, its file and line.

    `said` are options of the run, the learner and the method together; `judge` is a function given in Python,
    or several in a list, or a Judge."""
    errors: list[BurnishError] = []
    cls = find_method(word)
    mine = {"options": RunOptions, "learner": Learner}
    groups = {n: {k: v for k, v in said.items() if k in fields_of(c)} for n, c in mine.items()}
    rest = {k: v for k, v in said.items() if not any(k in g for g in groups.values())}
    errors += [_placed(_unknown(cls, k), origin(k)) for k in rest if k.partition(".")[0] not in settable(cls)]
    changes = {k: v for k, v in rest.items() if k.partition(".")[0] in settable(cls)}
    checked_: dict[str, Any] = {n: _checked(c, groups[n], errors, origin) for n, c in mine.items()}
    options, learner = checked_["options"], checked_["learner"]
    changes = _sound(cls, changes, errors, origin)
    values = settings(cls, changes)
    errors += [
        _placed(_quoted(k, v), origin(k)) for k, v in said.items() if origin(k) and isinstance(v, str) and _is_number(cls, k, v, values)
    ]
    _collect(errors, lambda: locate(options.model), origin("model"))
    for name, value in values.items():
        if isinstance(value, Role) and value.word not in ("frozen", "copy"):
            _collect(errors, lambda value=value: locate(value.word), origin(name) or f"--{name}")  # type: ignore[misc]
    task = _collect(errors, lambda: _task(options), origin("task"))
    before = len(errors)
    asked = _collect(errors, lambda: _judge(options, task, judge), origin("judge")) if task is not None else None
    heard = task is not None and len(errors) == before  # without them nobody knows what feedback there will be
    try:
        plan = planned(cls, values, gives(task, asked)) if heard else None
    except BurnishError as error:
        errors += [_placed(e, origin(_subject(e, said))) for e in apart(error)]
    else:
        errors += [_placed(e, origin(k)) for k, e in without_effect(cls, changes, values, plan[1] if plan else ()).items() if plan]
    if errors:
        raise Refused.all(errors)
    assert plan is not None
    made, roles = plan
    name = word if user_path(word) else name_of(cls)
    return Request(cls, name, options, learner, changes, values, task, asked, made, roles, dict(said))


def question(said: Mapping[str, Any], *, origin: Origin = lambda key: "") -> tuple[RunOptions, Any, Judge | None]:
    """What an evaluation needs: options of the run, its task and its judge. Raises Refused with all mistakes at once."""
    errors: list[BurnishError] = []
    options = _checked(RunOptions, said, errors, origin)
    _collect(errors, lambda: locate(options.model), origin("model"))
    task = _collect(errors, lambda: _task(options), origin("task"))
    judge = _collect(errors, lambda: _judge(options, task, None), origin("judge")) if task is not None else None
    if errors:
        raise Refused.all(errors)
    return options, task, judge


def _sound(cls: type[Method], changes: Mapping[str, Any], errors: list[BurnishError], origin: Origin) -> dict[str, Any]:
    """The changes that can be made; the others go to errors, so that one mistake hides no other."""
    sound: dict[str, Any] = {}
    for key in sorted(changes, key=lambda k: "." in k):
        tried = {**sound, key: changes[key]}
        made = _collect(errors, lambda tried=tried: settings(cls, tried), origin(key))  # type: ignore[misc]
        sound = tried if made is not None else sound
    return sound


def settable(cls: type[Method]) -> dict[str, Field]:
    """Fields of a method that a person may set."""
    unused = {n for c in cls.__mro__ for n in vars(c).get("unused", ())}
    return {n: f for n, f in fields_of(cls).items() if f.kind != "carried" and n not in unused}


SYNONYMS = {  # what others call it -> what it is called here
    "learning_rate": "lr", "batch_size": "prompts", "num_prompts": "prompts", "num_steps": "steps", "max_iterations": "steps",
    "num_generations": "group_size", "samples": "group_size", "beta": "penalty.weight", "kl_weight": "penalty.weight",
    "max_tokens": "max_steps", "max_new_tokens": "max_steps", "output_dir": "out", "output": "out", "dataset": "task", "data": "task",
    "grad_clip": "max_grad_norm", "warmup_steps": "warmup", "lora_rank": "lora", "reward_function": "judge", "advantage": "credit",
    "loss": "objective", "advantage_estimator": "credit", "clip_range": "objective.low", "lr_schedule": "schedule",
}  # fmt: skip


NUMBERS = ("int", "float", "bool", "Positive", "Count", "Share", "Size")


def _is_number(cls: type[Method], key: str, text: str, values: Mapping[str, Any]) -> bool:
    """Is this text the number that the option wants? Then it was quoted in its file; other text is refused already."""
    name, _, option = key.partition(".")
    held = values.get(name)
    parts = [getattr(p, "function", p) for p in (held if isinstance(held, tuple) else (held,))]
    kinds = {o: t for p in parts if isinstance(p, Part) for o, t in {**p.signature.kinds, "weight": "float"}.items()} if option else {}
    types = {n: f.type for c in (RunOptions, Learner, cls) for n, f in fields_of(c).items()} | {f"{name}.{o}": t for o, t in kinds.items()}
    if types.get(key) not in NUMBERS:
        return False
    try:
        checked(key, types[key], text)
    except BurnishError:
        return False
    return True


def _quoted(key: str, text: str) -> Refused:
    return Refused(f'{key} = "{text}" is text', expected=text, fix="leave out the quotes")


def _unknown(cls: type[Method], key: str) -> Refused:
    """Names the nearest option, in our words or others', or the methods that have it."""
    known = [*(f.name for f in fields(RunOptions)), *(f.name for f in fields(Learner)), *settable(cls)]
    others = [n for n in names() if key.partition(".")[0] in settable(find_method(n))]
    meant = {**{n: n for n in known}, **{n: x for n, x in SYNONYMS.items() if x.partition(".")[0] in known}}
    close = difflib.get_close_matches(key.replace("-", "_"), meant, 1)
    hint = f"it is an option of {', '.join(others)}" if others else f"did you mean {meant[close[0]]!r}?" if close else nearest(key, known)
    return Refused(f"there is no option {key!r}; {hint}", fix=f"burnish show {name_of(cls)} lists them all")


def _collect(errors: list[BurnishError], make: Callable[[], Any], where: str = "") -> Any:
    try:
        return make()
    except BurnishError as error:
        errors += [_placed(e, where) for e in apart(error)]
        return None


def _placed(error: BurnishError, where: str) -> Refused:
    """The same as a refusal, behind the place where the option was said."""
    return Refused(str(error), where=where)


def apart(error: BurnishError) -> list[BurnishError]:
    """The errors that one refusal is made of, so that lists of mistakes never nest."""
    if not re.match(r"\d+ problems:\n", str(error)):
        return [error]
    return [Refused(piece) for piece in re.split(r"\n\d+\. ", str(error))[1:]]


def _subject(error: BurnishError, said: Mapping[str, Any]) -> str:
    """The option that an impossible combination is about, for its place in a file."""
    words = re.findall(r"\w+", str(error).partition("\n  fix:")[0])
    return next((k for k in said if k.replace("-", "_") in words), "")


def _checked(cls: type, said: Mapping[str, Any], errors: list[BurnishError], origin: Origin) -> Any:
    found = {n: _collect(errors, lambda n=n, v=v: checked(n, fields_of(cls)[n].type, v), origin(n)) for n, v in said.items()}  # type: ignore[misc]
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
            out |= {key if n == "name" else f"{key}.{n.replace('-', '_')}": v for n, v in value.items()}
        else:
            out[key] = value
    return out


def line_of(path: Path, key: str) -> int | None:
    """The line of a TOML file where an option stands, in its own table, for error messages."""
    table, _, option = key.rpartition(".")
    places = [(table, option), ("", key), (key, "name")]
    inside = ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        bare = line.strip().replace("-", "_")
        if heading := re.match(r"\[\s*([\w.\"]+)\s*\]", bare):
            inside = heading[1].strip('"')
        elif (said := re.match(r"([\w.\"]+)\s*=", bare)) and (inside, said[1].replace('"', "")) in places:
            return number
    return None
