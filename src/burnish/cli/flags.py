"""Flags and TOML as one request: any option of the run, the learner and the method, by its name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from ..errors import BurnishError, Refused

SWITCHES = ("dry_run", "json", "quiet", "help")  # flags of the command itself, without a value
SHORT = {"-h": "--help", "-q": "--quiet"}
NAME = re.compile(r"--[A-Za-z_]")


@dataclass
class Flags:
    """What stands on a command line: words, switches, and options as text."""

    words: list[str] = field(default_factory=list)
    switches: set[str] = field(default_factory=set)
    options: dict[str, Any] = field(default_factory=dict)
    config: str = ""


def read(args: Sequence[str]) -> Flags:
    """Split a command line. A value may begin with a single dash (-1); one that begins with two needs the form --name=value."""
    found, rest = Flags(), [SHORT.get(a, a) for a in args]
    while rest:
        word = rest.pop(0)
        if not NAME.match(word):
            if word.startswith("-") and word != "-":
                raise click.UsageError(f"there is no option {word!r}; options are written --name value")
            found.words.append(word)
            continue
        name, equals, value = word[2:].partition("=")
        name = name.replace("-", "_")
        if name in SWITCHES:
            if equals:
                raise click.UsageError(f"--{name.replace('_', '-')} takes no value")
            found.switches.add(name)
        elif equals:
            found.options[name] = value
        else:
            found.options[name] = None if not rest or NAME.match(rest[0]) else rest.pop(0)
    found.config = str(found.options.pop("config", "") or "")
    return found


def bare(options: Mapping[str, Any], types: Mapping[str, str]) -> tuple[dict[str, Any], list[BurnishError]]:
    """Options without a value: true where one is a yes or no, else a mistake."""
    from ..methods.fields import in_words

    lacking = [n for n, v in options.items() if v is None and n in types and types[n] != "bool"]
    errors: list[BurnishError] = [Refused(f"--{n.replace('_', '-')} needs a value", expected=in_words(types[n])) for n in lacking]
    return {n: "true" if v is None else v for n, v in options.items() if n not in lacking}, errors


def from_file(config: str) -> tuple[dict[str, Any], Callable[[str], str]]:
    """Options of a TOML file, and where each stands in it."""
    if not config:
        return {}, lambda key: ""
    from ..training.request import from_toml, line_of

    path = Path(config)
    said = from_toml(path)

    def place(key: str) -> str:
        line = line_of(path, key) if key in said else None
        return f"{path}:{line}" if line else str(path) if key in said else ""

    return said, place
