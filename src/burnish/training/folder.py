"""A run folder: its files, its lock, and logs that can be cut back to a checkpoint."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ..errors import RunError

LOGS = ("metrics", "timing", "rollouts")


class RunFolder:
    """Where a run writes. Only one process at a time; raises RunError naming what is in the way.

    config.json, versions.json, metrics.jsonl (deterministic columns only), timing.jsonl, rollouts.jsonl, checkpoints/, ledger.json,
    result.json, report.html, model/."""

    def __init__(self, path: Path):
        self.path = path
        self.checkpoints = path / "checkpoints"
        self._lock = FileLock(path / ".lock", timeout=0)
        self._files: dict[str, Any] = {}

    def create(self) -> None:
        """Make it and take it. An existing run is never written over."""
        if (self.path / "config.json").exists():
            fix = f"burnish resume {self.path}, or another --out"
            raise RunError("there is a run in this folder already", where=str(self.path), fix=fix)
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"the run folder cannot be made: {error.strerror}", where=str(self.path), fix="another --out") from error
        self.take()

    def take(self) -> None:
        """Lock it for this process; the lock goes when the process does, however it ends."""
        try:
            self._lock.acquire()
        except Timeout as error:
            raise RunError("another process works on this run", where=str(self.path), fix="wait for it, or choose another --out") from error
        except OSError as error:
            raise RunError(f"the run folder cannot be written: {error.strerror}", where=str(self.path)) from error

    def release(self) -> None:
        """Close the logs and give the folder back."""
        for file in self._files.values():
            file.close()
        self._files.clear()
        self._lock.release()

    def log(self, name: str, row: dict[str, Any]) -> None:
        """Append one row to a log; it is on its way to disk when this returns."""
        try:
            if name not in self._files:
                self._files[name] = (self.path / f"{name}.jsonl").open("a", encoding="utf-8")
            self._files[name].write(json.dumps(row) + "\n")
            self._files[name].flush()
        except OSError as error:
            raise self._cannot(f"{name}.jsonl", error) from error

    def offsets(self) -> dict[str, int]:
        """The size of each log in bytes."""
        return {n: (self.path / f"{n}.jsonl").stat().st_size if (self.path / f"{n}.jsonl").exists() else 0 for n in LOGS}

    def cut(self, offsets: dict[str, int]) -> None:
        """Cut the logs back to what they were at a checkpoint: the steps after it are done again."""
        for name, size in offsets.items():
            path = self.path / f"{name}.jsonl"
            if path.exists():
                os.truncate(path, size)
            elif size:
                raise RunError(f"{name}.jsonl is missing", where=str(self.path), fix="restore it, or start the run again")

    def write(self, name: str, value: Any) -> None:
        """Write a JSON file (or text) aside and rename it."""
        text = value if isinstance(value, str) else json.dumps(value, indent=2) + "\n"
        aside = self.path / f".{name}.writing"
        try:
            aside.write_text(text, encoding="utf-8")
            os.replace(aside, self.path / name)
        except OSError as error:
            raise self._cannot(name, error) from error

    def read(self, name: str) -> Any:
        """A JSON file of the run. Raises RunError when it is missing or damaged."""
        try:
            return json.loads((self.path / name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise RunError(f"{name} cannot be read: {error}", where=str(self.path), expected="the folder of a burnish run") from error

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of a log; a last line that was cut short is left out."""
        path = self.path / f"{name}.jsonl"
        lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
        return [json.loads(line) for line in lines]

    def _cannot(self, name: str, error: OSError) -> RunError:
        fix = f"make room or give rights, then: burnish resume {self.path}"
        return RunError(f"{name} could not be written: {error.strerror}", where=str(self.path), fix=fix)


def next_folder(root: Path, stem: str) -> Path:
    """runs/<stem>-<number>, the first number that is free."""
    number = 1
    while (root / f"{stem}-{number}").exists():
        number += 1
    return root / f"{stem}-{number}"
