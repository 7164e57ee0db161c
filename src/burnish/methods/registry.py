"""The registry: the folders of this package, one file per method. `my_file.py:MyMethod` is a method of a user's own."""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path

from ..errors import Refused, nearest
from ..parts import module, user_path
from .base import Method

HERE = Path(__file__).parent


@cache
def names() -> dict[str, tuple[str, str]]:
    """name -> (family, module). A file's name, with dashes, is the method's name; its folder is the family."""
    found = {}
    for path in sorted(HERE.glob("*/[!_]*.py")):
        family = path.parent.name
        found[path.stem.replace("_", "-")] = (family.replace("_", "-"), f"burnish.methods.{family}.{path.stem}")
    return found


def method(word: str) -> type[Method]:
    """A method by name, or a user's own. Raises Refused naming the nearest."""
    if own := user_path(word):
        path, name = own
        made = getattr(module(path), name, None)
        if not (isinstance(made, type) and issubclass(made, Method)):
            raise Refused(f"{name!r} is no method", where=str(path), expected="a class derived from a burnish method")
        return made
    if word not in names():
        raise Refused(f"there is no method {word!r}; {nearest(word, names())}", fix="burnish list")
    return _class(names()[word][1])


def _class(path: str) -> type[Method]:
    """The one method class that a file defines."""
    loaded = importlib.import_module(path)
    own = [x for x in vars(loaded).values() if isinstance(x, type) and issubclass(x, Method) and x.__module__ == path]
    if len(own) != 1:
        raise Refused(f"{path} must define one method, and defines {len(own)}")
    return own[0]


def name_of(cls: type[Method]) -> str:
    """The name a class is registered under; its own name for a user's."""
    return next((n for n, (_, path) in names().items() if path == cls.__module__), cls.__name__)


def family_of(cls: type[Method]) -> str:
    """The family a class belongs to."""
    return names().get(name_of(cls), ("own", ""))[0]


def parent_of(cls: type[Method]) -> str | None:
    """The registered method it is a diff to."""
    return next((name_of(c) for c in cls.__mro__[1:] if issubclass(c, Method) and c.__module__ in {p for _, p in names().values()}), None)
