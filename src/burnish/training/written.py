"""What a run's config.json says, so that the run can be taken up from any folder, and only with the files that it began with."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..errors import RunError
from .request import Request

_PYTHON = re.compile(r"[^,:]+\.py(?=:)")


def absolute(value: Any) -> Any:
    """A value with the paths in it made absolute: files of Python, files of rows, folders that are there."""
    if not isinstance(value, str):
        return str(value) if isinstance(value, Path) else value
    whole = Path(value).expanduser()
    if ("/" in value and ":" not in value and whole.exists()) or whole.suffix == ".jsonl":
        return str(whole.resolve())
    return _PYTHON.sub(lambda found: str(Path(found[0].strip()).expanduser().resolve()), value)


def config(request: Request, threads: int) -> dict[str, Any]:
    """All that a resume needs, and every setting as it is in force."""
    said = {n: absolute(v) for n, v in {**request.said, "threads": threads}.items()}
    method = absolute(request.name)
    return {"method": method, "said": said, "files": files([method, *said.values()]), "resolved": resolved(request)}


def files(values: list[Any]) -> dict[str, str]:
    """The digest of every file that a person brought."""
    paths = [p for v in values if isinstance(v, str) for p in (_PYTHON.findall(v) or [v])]
    there = [Path(p) for p in dict.fromkeys(paths) if p.endswith((".py", ".jsonl")) and Path(p).is_file()]
    return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in there}


def resolved(request: Request) -> dict[str, Any]:
    """Every setting as it is in force, as plain values."""
    flat = {**asdict(request.options), **asdict(request.learner)}
    for name, value in request.values.items():
        if name not in ("time", "cursor"):
            flat[name] = str([str(p) for p in value] if isinstance(value, tuple) and name != "reduction" else value)
    flat["judge"] = request.judge.name if request.judge else "none"
    return {n: absolute(flat[n]) for n in sorted(flat) if n not in ("threads", "out")}


def check_unchanged(folder: Path, then: Mapping[str, Any], request: Request) -> None:
    """Raises RunError naming every file and setting that is not what it was when the run began."""
    fix = "go back to what it was, or start anew"
    now = files(list(then["files"]))
    changed = [path for path, digest in then["files"].items() if now.get(path) != digest]
    if changed:
        raise RunError("files changed since this run began", where=str(folder), seen=", ".join(changed), fix=fix)
    differing = {k: (then["resolved"].get(k), v) for k, v in resolved(request).items() if then["resolved"].get(k) != v}
    if differing:
        seen = "; ".join(f"{k}: {a!r} then, {b!r} now" for k, (a, b) in differing.items())
        raise RunError("the code changed since this run began", where=str(folder), seen=seen, fix=fix)
