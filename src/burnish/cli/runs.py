"""burnish runs: the runs in a folder, from their files alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ..errors import RunError
from .text import as_json, columns, number


@click.command("runs")
@click.argument("folder", default="runs")
@click.option("--json", "json_", is_flag=True, help="A JSON list for scripts.")
def runs_command(folder: str, json_: bool) -> None:
    """The runs below FOLDER (runs/ unless said): how far they are, and what they brought."""
    root = Path(folder)
    if not root.is_dir() and folder != "runs":
        raise RunError("there is no such folder", where=folder)
    found = [said_of(p.parent) for p in sorted(root.glob("**/config.json"), key=_age) if is_run(p.parent)]
    if json_:
        click.echo(as_json(found))
    elif not found:
        click.echo(f"no runs in {folder}", err=True)
    else:
        rows = [[r["run"], r["method"], r["task"], f"{r['step']}/{r['steps']}", r["state"], *_change(r)] for r in found]
        click.echo(columns([["run", "method", "task", "step", "state", "before", "after"], *rows], head=True))


def _change(run: dict[str, Any]) -> list[str]:
    return [number(run["before"]), number(run["after"])]


def is_run(path: Path) -> bool:
    """Is this the folder of a run? A model's folder has a config.json, too."""
    try:
        said = json.loads((path / "config.json").read_text(encoding="utf-8"))
        return isinstance(said, dict) and {"method", "said", "resolved"} <= said.keys()
    except (OSError, ValueError):
        return False


def said_of(path: Path) -> dict[str, Any]:
    """One run: method, task, steps, state (done, running, stopped), before and after."""
    config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    result = _result(path)
    step, steps = last_step(path), config["resolved"].get("steps", 0)
    done = bool(result) and result["steps"] == step
    return {
        "run": str(path),
        "method": config["method"],
        "task": config["resolved"].get("task", ""),
        "model": config["resolved"].get("model", ""),
        "step": step,
        "steps": step if done else steps,
        "state": "running" if locked(path) else "done" if done else "stopped",
        "metric": result.get("metric") if done else None,
        "before": result.get("before") if done else None,
        "after": result.get("after") if done else None,
    }


def _result(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((path / "result.json").read_text(encoding="utf-8"))
        return found
    except (OSError, ValueError):
        return {}


def last_step(path: Path) -> int:
    """The step of the last whole line of the metrics, read from the end of the file."""
    file = path / "metrics.jsonl"
    if not file.is_file():
        return 0
    with file.open("rb") as opened:
        opened.seek(max(0, file.stat().st_size - 65536))
        lines = opened.read().split(b"\n")[:-1]
    return int(json.loads(lines[-1])["step"]) if lines else 0


def locked(path: Path) -> bool:
    """Does a process work on it? The lock is tried and given back at once."""
    if not (path / ".lock").exists():
        return False
    from filelock import FileLock, Timeout

    try:
        with FileLock(path / ".lock", timeout=0):
            return False
    except Timeout:
        return True
    except OSError:
        return False


def _age(path: Path) -> float:
    return path.stat().st_mtime
