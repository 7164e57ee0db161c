"""Parts: pure functions found in folders, read with `ast` (so without torch), bound by argument name.

A part's positional arguments are columns of the table, its keyword-only arguments are options. The folder is the registry."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from .errors import BurnishError, Refused, nearest
from .types.context import digest

HERE = Path(__file__).parent

# A field of a method -> the folder of its parts.
SLOTS = {
    "reward": "rewards",
    "keep": "keep",
    "credit": "credit",
    "shape": "shape",
    "objective": "objectives",
    "critic_objective": "objectives",
    "penalty": "divergences",
    "divergence": "divergences",
    "measure": "measures",
}


@dataclass(frozen=True)
class Signature:
    """What a part says of itself: columns it reads, options with defaults and types, what it returns, its docstring."""

    columns: tuple[str, ...]
    options: Mapping[str, Any]
    kinds: Mapping[str, str]
    returns: Mapping[str, str]  # {"": "Steps"}, or named columns {"advantage": "Steps", "returns": "Steps"}
    doc: str
    source: str

    @property
    def stated(self) -> bool:
        """Whether the annotation says what a value belongs to; a helper's (-> Tensor) does not."""
        made = self.returns.get("")
        if self.columns == ("batch",):  # reads a whole table: called by hand
            return False
        return made is None or made in ("Steps", "Rows", "Pairs", "Groups") or made.startswith("dict")

    @property
    def summary(self) -> str:
        return self.doc.split("\n")[0]


@cache
def read(path: Path) -> dict[str, Signature]:
    """Every public function of a file, by name. Raises Refused when the file is missing or no Python."""
    try:
        text = path.read_text(encoding="utf-8")
        body = ast.parse(text).body
        tables = {n.name: _columns_of(n) for n in body if isinstance(n, ast.ClassDef)}
        return {n.name: _signature(n, text, tables) for n in body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")}
    except OSError as error:
        raise Refused("there is no such file", where=str(path), fix="give a path to a Python file, as in my_file.py:my_function") from error
    except (SyntaxError, ValueError) as error:
        raise Refused(f"the file cannot be read as parts: {error}", where=str(path)) from error


def _default(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise ValueError(f"line {node.lineno}: the default {ast.unparse(node)} is no plain value") from None


def _columns_of(node: ast.ClassDef) -> dict[str, str]:
    """The columns that a TypedDict names."""
    return {n.target.id: ast.unparse(n.annotation) for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}


def _signature(node: ast.FunctionDef, text: str, tables: Mapping[str, Mapping[str, str]]) -> Signature:
    asked = node.args.kwonlyargs
    options = {a.arg: _default(d) if d else None for a, d in zip(asked, node.args.kw_defaults, strict=True)}
    kinds = {a.arg: ast.unparse(a.annotation) if a.annotation else "Any" for a in asked}
    made = node.returns
    if isinstance(made, ast.Call):
        returns = {str(k.arg): ast.unparse(k.value).strip("'\"") for k in made.keywords}
    else:
        word = ast.unparse(made).strip("'\"") if made else "Steps"
        returns = dict(tables.get(word) or {"": word})
    columns = tuple(a.arg for a in (*node.args.posonlyargs, *node.args.args))
    return Signature(columns, options, kinds, returns, ast.get_docstring(node) or "", ast.get_source_segment(text, node) or "")


@dataclass(frozen=True)
class Part:
    """A function by name, its options, and the weight of its result in the loss. Calling it calls the function."""

    path: Path
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    weight: float = 1.0

    @property
    def signature(self) -> Signature:
        return read(self.path)[self.name]

    @property
    def settings(self) -> dict[str, Any]:
        """Every option with the value it has."""
        return {**self.signature.options, **self.options}

    def __call__(self, *columns: Any, **options: Any) -> Any:
        return function(self.path, self.name)(*columns, **{**self.options, **options})

    def __str__(self) -> str:
        said = [f"{n}={v}" for n, v in self.options.items()] + ([f"weight={self.weight}"] if self.weight != 1.0 else [])
        name = self.name if self.path.is_relative_to(HERE) else f"{self.path}:{self.name}"
        return name + (f"({', '.join(said)})" if said else "")


@cache
def module(path: Path) -> Any:
    """The module of a file: of this package by its name, of a user by its path. Raises Refused when it cannot be imported."""
    if path.is_relative_to(HERE):
        return importlib.import_module(".".join(("burnish", *path.relative_to(HERE).with_suffix("").parts)))
    spec = importlib.util.spec_from_file_location(f"burnish_user_{path.stem}_{digest(str(path)):x}", path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made  # dataclasses and pickle look a class's module up there
    try:
        spec.loader.exec_module(made)
    except BurnishError:
        del sys.modules[spec.name]
        raise
    except Exception as error:
        del sys.modules[spec.name]
        raise Refused(f"importing the file raised {type(error).__name__}: {error}", where=str(path)) from error
    return made


def function(path: Path, name: str) -> Callable[..., Any]:
    """A function of a file, imported now."""
    made: Callable[..., Any] = getattr(module(path), name)
    return made


def user_path(word: str) -> tuple[Path, str] | None:
    """`my_file.py:mine` as path and name; None when the word is a plain name."""
    file, colon, own = word.rpartition(":")
    return (Path(file).expanduser().resolve(), own) if colon and file.endswith(".py") else None


@cache
def folder(name: str) -> dict[str, Path]:
    """Every part of a folder of this package: name -> file. A function that does not state its form is a helper, no part."""
    return {part: path for path in sorted((HERE / name).glob("[!_]*.py")) for part, said in read(path).items() if said.stated}


def find(kind: str, word: str) -> Part:
    """A part by its name on the command line: `ordinal`, or a user's own `my_file.py:mine`. Raises Refused naming the nearest."""
    if own := user_path(word):
        path, name = own
        if name not in read(path):
            raise Refused(f"{path.name} has no function {name!r}; {nearest(name, read(path))}", where=str(path))
        return Part(path, name)
    if word not in folder(kind):
        raise Refused(f"{kind} has no {word!r}; {nearest(word, folder(kind))}")
    return Part(folder(kind)[word], word)


class Folder:
    """A folder of parts as attributes: `credit.ordinal` is a Part; nothing is imported until it is called."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Part:
        if name.startswith("__"):
            raise AttributeError(name)
        return find(self._name, name)


rewards, keep, credit, shape = Folder("rewards"), Folder("keep"), Folder("credit"), Folder("shape")
objectives, divergences, measures = Folder("objectives"), Folder("divergences"), Folder("measures")


def use(part: Part | Callable[..., Any], *, weight: float | None = None, **options: Any) -> Part:
    """A part with options; an unknown option is refused with the nearest. `weight` scales a term of the loss, never its metric.

    What is not said stays as the part has it. A function of a file of your own is a part, too: `credit = use(above_median)`."""
    if not isinstance(part, Part):
        part = find_own(part)
    for option in options:
        if option not in part.signature.options:
            raise Refused(f"{part.name} has no option {option!r}; {nearest(option, part.signature.options)}")
    return replace(part, options={**part.options, **options}, weight=part.weight if weight is None else weight)


def find_own(written: Callable[..., Any]) -> Part:
    """A function that stands in a file, as a part."""
    code = getattr(written, "__code__", None)
    path = Path(code.co_filename) if code else HERE
    if code is None or not path.is_file() or written.__name__ not in read(path.resolve()):
        raise Refused(f"{written!r} is no part", expected="a function that stands in a file, with its arguments named after columns")
    return Part(path.resolve(), written.__name__)


@dataclass(frozen=True)
class Over:
    """A function of the next-step distribution(s) p, q ((N,V) log-probabilities) -> (N,), evaluated in chunks inside the forward.

    `to` is the role that q comes from, as the column `<to>_distribution`; None for a function of p alone."""

    name: str
    function: Callable[..., Any]
    to: str | None = None

    def __call__(self, p: Any, q: Any = None) -> Any:
        return self.function(p, q) if self.to else self.function(p)


@dataclass(frozen=True)
class TopK:
    """Want: the k most probable symbols of each step, as `top_ids` and `top_logp` (B,T,k)."""

    k: int


@dataclass(frozen=True)
class At:
    """Want: log-probabilities (B,T,K) of the ids in a column (B,T,K), as `at_<column>`."""

    column: str


def over(part: Part, *, to: str | None = None, name: str = "divergence", **options: Any) -> Over:
    """A divergence of distributions as something to want: over(divergences.hellinger, to="reference")."""
    return Over(name, use(part, **options), to)
