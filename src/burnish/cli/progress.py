"""What a person sees while a run works: a live bar on a terminal, a plain line now and then elsewhere. All of it on stderr."""

from __future__ import annotations

import sys
from collections import deque
from typing import Any

import click

EVERY = 10  # steps between plain lines
SHOWN = {"reward_mean": "reward", "length_mean": "length", "entropy": "entropy"}


def progress(quiet: bool) -> Progress:
    """The progress for this stderr."""
    if quiet:
        return Progress()
    return Bar() if sys.stderr.isatty() else Lines()


class Progress:
    """Told by the run what happens. This one says nothing."""

    folder = ""

    def __init__(self) -> None:
        self.steps = 0
        self.loss: tuple[tuple[str, float], ...] = ()
        self.seconds: deque[float] = deque(maxlen=50)

    def begin(self, run: Any) -> None:
        """The run is built, nothing has happened yet."""
        self.folder, self.steps = str(run.folder.path), run.request.options.steps
        values = run.request.values
        self.loss = tuple((p.name, p.weight) for s in ("objective", "penalty") for p in _parts(values.get(s)))
        task = run.request.options.task
        self.say(f"{run.request.name} on {task}, model {run.request.options.model}, in {self.folder}")

    def __call__(self, what: str, said: dict[str, Any]) -> None:
        if what == "before":
            self.say(f"before: {scored(said)}")
        elif what == "step":
            self.seconds.append(said["seconds"])
            self.step(said)
        elif what == "evaluation":
            self.say(f"step {said['step']}: {scored(said)}")
        elif what == "stopping":
            self.say("stopping after this step; once more stops at once")
        elif what == "after":
            self.close()
            self.say(f"after: {scored(said)}")

    def say(self, line: str) -> None:
        """One line."""

    def step(self, said: dict[str, Any]) -> None:
        """One step is done."""

    def close(self) -> None:
        """Nothing more will come, or an error is about to be told."""

    def line(self, said: dict[str, Any]) -> str:
        """The figures of a step, and the time that is left."""
        shown = [f"{label} {said[n]:.3g}" for n, label in SHOWN.items() if n in said]
        terms = [said[n] * weight for n, weight in self.loss if n in said]
        shown += [f"loss {sum(terms):.2g}"] if terms else []
        tokens = said.get("sampled_steps", said.get("trained_steps", 0)) / max(said["seconds"], 1e-9)
        left = (self.steps - said["step"]) * sum(self.seconds) / len(self.seconds)
        return "  ".join([*shown, f"{tokens:.0f} tokens/s", f"{clock(left)} left"])


class Lines(Progress):
    """A plain line at the first, every tenth and the last step."""

    def say(self, line: str) -> None:
        click.echo(line, err=True)

    def step(self, said: dict[str, Any]) -> None:
        if said["step"] == 1 or said["step"] % EVERY == 0 or said["step"] == self.steps:
            self.say(f"step {said['step']}/{self.steps}  {self.line(said)}")


class Bar(Progress):
    """A live bar with the figures of the last step."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Rich
        from rich.table import Column

        console = Console(stderr=True, highlight=False)
        figures = TextColumn("{task.fields[said]}", table_column=Column(no_wrap=True, overflow="crop"))
        self.rich = Rich(*([BarColumn(bar_width=16)] if console.width > 110 else []), figures, console=console, transient=True)
        self.task: Any = None

    def say(self, line: str) -> None:
        self.rich.console.print(line, markup=False, soft_wrap=True)

    def step(self, said: dict[str, Any]) -> None:
        if self.task is None:
            self.rich.start()
            self.task = self.rich.add_task("", total=self.steps, said="")
        self.rich.update(self.task, completed=said["step"], said=f"{said['step']}/{self.steps}  {self.line(said)}")

    def close(self) -> None:
        self.rich.stop()


def scored(said: dict[str, Any]) -> str:
    """An evaluation in one line."""
    if "nll" in said:
        return f"negative log-likelihood {said['nll']:.4f} per token ± {said['standard_error']:.4f}"
    shown = f"{said['sampled']:.4f} ± {said['standard_error']:.4f}"
    shown += f", greedy {said['greedy']:.4f}" if "greedy" in said else ""
    return f"{shown} ({said['contexts']} held-out problems)"


def clock(seconds: float) -> str:
    """Seconds as a clock says them."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _parts(value: Any) -> list[Any]:
    return [p for p in (value if isinstance(value, tuple) else (value,)) if p is not None]
