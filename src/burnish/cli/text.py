"""Plain text: columns, values and JSON as they are printed."""

from __future__ import annotations

import json
import math
import shutil
import textwrap
from collections.abc import Sequence
from typing import Any

import click


def width() -> int:
    """Columns of the terminal; lines that go to a file are not cut short."""
    return shutil.get_terminal_size((140, 24)).columns


def columns(rows: Sequence[Sequence[str]], *, indent: str = "", head: bool = False) -> str:
    """Rows with aligned columns. The last column is wrapped to the width of the terminal."""
    if not rows:
        return ""
    sizes = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    left = len(indent) + sum(sizes) + 2 * len(sizes)
    room = max(width() - left, 40)
    lines = []
    for number, row in enumerate(rows):
        start = indent + "".join(cell.ljust(size) + "  " for cell, size in zip(row[:-1], sizes, strict=True))
        wrapped = textwrap.wrap(row[-1], room, break_long_words=False) or [""]
        mine = [(start + wrapped[0]).rstrip(), *(" " * left + w for w in wrapped[1:])]
        lines += [click.style(line, bold=True) for line in mine] if head and number == 0 else mine
    return "\n".join(lines)


def as_json(value: Any, *, lines: bool = False) -> str:
    """JSON for scripts: one line, or indented. Numbers that JSON lacks become null."""
    return json.dumps(_finite(value), ensure_ascii=False, indent=None if lines else 2, default=str)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def number(value: Any) -> str:
    """A figure for reading."""
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def plain(value: Any) -> str:
    """A default or setting for reading."""
    if isinstance(value, list | tuple):
        return ",".join(plain(v) for v in value) or "none"
    if value is None:
        return "none"
    return "''" if value == "" else f"{value:g}" if isinstance(value, float) else str(value)


def heading(word: str) -> str:
    """A title above a block."""
    return click.style(word, bold=True)
