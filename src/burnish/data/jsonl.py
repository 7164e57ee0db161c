"""JSON lines: prompts, demonstrations, anything else a reward looks up."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import DataError, nearest


def rows(path: Path, columns: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """Every row with a `prompt` (text or chat messages) and perhaps a `completion`; further columns are kept.

    `columns` maps our names to the file's: {"prompt": "question"}. Raises DataError naming file and line."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"the file cannot be read: {error.strerror}", where=str(path)) from error
    except UnicodeDecodeError as error:
        raise DataError("the file is not UTF-8 text", where=f"{path}, byte {error.start}") from error
    found = [_row(path, number, line, columns or {}) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not found:
        raise DataError("the file has no rows", where=str(path), expected='one JSON object per line, such as {"prompt": "..."}')
    return found


def _row(path: Path, number: int, line: str, columns: Mapping[str, str]) -> dict[str, Any]:
    where = f"{path}:{number}"
    try:
        row = json.loads(line)
    except ValueError as error:
        raise DataError(f"the line is not JSON: {error}", where=where, seen=line[:80]) from error
    if not isinstance(row, dict):
        raise DataError("the line is no JSON object", where=where, seen=line[:80])
    for ours, theirs in columns.items():
        if theirs in row:
            row[ours] = row.pop(theirs)
    seen = "columns " + ", ".join(map(repr, row))
    if "prompt" not in row:
        hint = next((c for c in ("question", "instruction", "input", "query") if c in row), "NAME")
        raise DataError("the row has no prompt", where=where, seen=seen, expected="a column 'prompt'", fix=f"--columns prompt={hint}")
    prompt = row["prompt"]
    messages = isinstance(prompt, list) and all(isinstance(m, dict) and {"role", "content"} <= m.keys() for m in prompt)
    if not (messages or isinstance(prompt, str)) or not prompt:
        expected = "text, or messages with role and content"
        raise DataError("the prompt is empty or of the wrong form", where=where, seen=repr(prompt)[:80], expected=expected)
    completion = row.get("completion")
    if isinstance(completion, list) and completion and isinstance(completion[-1], dict):
        row["completion"] = completion = completion[-1].get("content")
    if "completion" in row and not isinstance(completion, str):
        raise DataError("the completion is no text", where=where, seen=repr(completion)[:80])
    return row


def mapping(text: str) -> dict[str, str]:
    """`prompt=question,completion=answer` as a mapping. Raises DataError for anything else."""
    out = {}
    for piece in filter(None, text.split(",")):
        ours, equals, theirs = piece.partition("=")
        if not equals or ours not in ("prompt", "completion"):
            known = nearest(ours, ("prompt", "completion"))
            raise DataError(f"--columns {piece!r} cannot be read; {known}", expected="prompt=THEIR_NAME,completion=THEIR_NAME")
        out[ours.strip()] = theirs.strip()
    return out
