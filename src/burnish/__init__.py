"""burnish trains any policy from any feedback.

import burnish
run = burnish.train("grpo", task="mix", model="tiny")
print(run.before["sampled"], run.after["sampled"], run.folder.path)"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .training.run import Run

__version__ = "0.1.0"


def train(method: str, *, judge: Any = None, listener: Any = None, **options: Any) -> Run:
    """Train and return the finished run. `options` are those of `burnish train METHOD --help`, with underscores; `judge` is a function
    (answer, ...) -> float, several in a list, or a Judge. Raises burnish.errors.Refused before anything heavy when they cannot work."""
    from .training.request import resolve

    said = {**options, "judge": judge} if isinstance(judge, str) else options
    request = resolve(method, said, judge=None if isinstance(judge, str) else judge)
    from .training.run import start

    run = start(request, listener)
    try:
        run.go()
    finally:
        run.folder.release()
    return run


def resume(folder: str, *, judge: Any = None, at: str = "", listener: Any = None) -> Run:
    """Take up a run from its folder and finish it; bit-equal to a run that was never stopped."""
    from pathlib import Path

    from .training import run as runs

    run = runs.resume(Path(folder), listener, at=at, judge=judge)
    try:
        run.go()
    finally:
        run.folder.release()
    return run
