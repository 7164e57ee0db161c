"""The run: evaluate, step, save, evaluate again. A folder is enough to go on from, to the bit."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from ..errors import CheckpointError, RunError
from ..measures.samples import samples
from ..methods.base import Method
from ..models.base import Model
from ..models.load import load, reads_compact
from ..types.chance import mix
from ..types.table import Rollouts
from . import checkpoint
from .evaluate import evaluate, headline
from .folder import RunFolder, next_folder
from .request import Request, resolve
from .shown import shown
from .written import check_unchanged, config

Listener = Callable[[str, dict[str, Any]], None]  # told of "plan", "before", "step", "evaluation", "saved", "after"


class Interrupted(Exception):
    """The person stopped the run; it is saved."""

    def __init__(self, folder: Path):
        self.folder = folder
        super().__init__(f"stopped and saved; go on with: burnish resume {folder}")


class Run:
    """One run and its folder. `before` and `after` are evaluations; `result` is what scripts read."""

    def __init__(self, request: Request, folder: RunFolder, listener: Listener | None = None):
        self.request, self.folder, self.tell = request, folder, listener or (lambda what, said: None)
        self.before: dict[str, Any] = {}
        self.after: dict[str, Any] = {}
        self.stopping = False
        options = request.options
        torch.set_num_threads(options.threads or default_threads(options.model))
        self.method = build(request)

    # -- the flow
    def go(self) -> dict[str, Any]:
        """From where it stands to its end. Returns the result. Raises Interrupted after Ctrl-C, when all is saved."""
        options = self.request.options
        trains = self.request.method.kind == "method"
        with self._stopped_gently():
            if not self.before:
                self.before = self._evaluated(self.method.policy)
                self.tell("before", self.before)
                self._save()
            while trains and self.method.time < options.steps:
                self._step()
                last = self.method.time == options.steps
                if options.eval_every and self.method.time % options.eval_every == 0 and not last:
                    self._log_evaluation()
                if self.stopping or last or self.method.time % options.save_every == 0:
                    self._save()
                if self.stopping and not last:
                    raise Interrupted(self.folder.path)
            self.after = self._evaluated(self.method.deploy())
        return self._finish()

    def _step(self) -> None:
        began = time.perf_counter()
        batch = self.method.produce()
        drawn = time.perf_counter()
        told = samples(batch)
        batch, metrics = self.method.consume(batch)
        done = time.perf_counter()
        number = self.method.time
        values = {n: m.value() for n, m in self.method.memories.items() if m.value() is not None}
        row = {"step": number, **told, **metrics, **values, **{f"total_{n}": x for n, x in self.method.ledger.accounts.items()}}
        self.folder.log("metrics", row)
        self.folder.log("timing", {"step": number, "produce_s": drawn - began, "consume_s": done - drawn})
        if number % self.request.options.show_every == 0 or number == 1:
            for one in shown(batch, self.method.policy, number):
                self.folder.log("rollouts", one)
        self.tell("step", row | {"seconds": done - began})

    def _evaluated(self, model: Model) -> dict[str, Any]:
        request = self.request
        return evaluate(model, request.task, request.judge, size=request.options.eval_size)

    def _log_evaluation(self) -> None:
        found = self._evaluated(self.method.deploy())
        kept = {n: x for n, x in found.items() if n != "samples"}
        self.folder.log("metrics", {"step": self.method.time, "evaluation": kept})
        self.tell("evaluation", {"step": self.method.time, **kept})

    # -- what lies in the folder
    def _save(self) -> None:
        state = {"method": self.method.state(), "offsets": self.folder.offsets(), "before": self.before}
        name = f"step-{self.method.time:06d}"
        checkpoint.write(self.folder.checkpoints, name, state, self.request.options.keep_checkpoints)
        self.tell("saved", {"step": self.method.time})

    def load(self, at: str = "") -> None:
        """Take up a checkpoint, the newest unless named. Raises CheckpointError naming place and remedy."""
        path = self.folder.checkpoints / at if at else checkpoint.newest(self.folder.checkpoints)
        if path is None:  # stopped before the first save: nothing was learnt yet
            self.folder.cut(dict.fromkeys(self.folder.offsets(), 0))
            return
        if not path.is_dir():
            there = ", ".join(p.name for p in checkpoint.checkpoints(self.folder.checkpoints)) or "none"
            raise CheckpointError("there is no such checkpoint", where=str(path), seen=f"here: {there}")
        state = checkpoint.read(path)
        try:
            self.method.load_state(state["method"])
        except (KeyError, RuntimeError) as error:
            raise CheckpointError(f"the checkpoint is not of this method and model: {error}", where=str(path)) from error
        self.folder.cut(state["offsets"])
        self.before = state["before"]
        for later in [p for p in checkpoint.checkpoints(self.folder.checkpoints) if p.name > path.name]:
            shutil.rmtree(later, ignore_errors=True)  # what came after is done again

    def _finish(self) -> dict[str, Any]:
        from .report import report

        request, folder = self.request, self.folder
        if self.method.kind == "method" and hasattr(self.method.policy, "save"):
            self._export()
        name, before = headline(self.before)
        after = headline(self.after)[1]
        result = {
            "run": str(folder.path),
            "method": request.name,
            "task": request.options.task,
            "model": request.options.model,
            "metric": f"held-out {name}",
            "before": before,
            "after": after,
            "steps": self.method.time,
            "seed": request.options.seed,
        }
        folder.write("ledger.json", self.method.ledger.accounts)
        folder.write("evaluations.json", {"before": self.before, "after": self.after})
        folder.write("result.json", result)
        folder.write("report.html", report(folder, request, self.before, self.after))
        self.tell("after", {**self.after, **result})
        return result

    def _export(self) -> None:
        target, aside = self.folder.path / "model", self.folder.path / ".model.writing"
        try:
            self.method.policy.save(aside)  # type: ignore[operator]
            if reads_compact(self.request.options.model):
                (aside / "burnish.json").write_text('{"grammar": "compact"}\n')
            shutil.rmtree(target, ignore_errors=True)
            os.replace(aside, target)
        except OSError as error:
            raise RunError(
                f"the model could not be written: {error}", where=str(target), fix=f"make room, then: burnish resume {self.folder.path}"
            ) from error

    @contextmanager
    def _stopped_gently(self) -> Iterator[None]:
        """The first Ctrl-C (or SIGTERM) finishes the step and saves; the second stops at once."""

        def stop(number: int, frame: Any) -> None:
            if self.stopping:
                raise KeyboardInterrupt
            self.stopping = True
            self.tell("stopping", {})

        try:
            before = {s: signal.signal(s, stop) for s in (signal.SIGINT, signal.SIGTERM)}
        except ValueError:  # not the main thread: nobody presses Ctrl-C here
            before = {}
        try:
            yield
        finally:
            for s, handler in before.items():
                signal.signal(s, handler)


def default_threads(model: str) -> int:
    """Small models gain nothing beyond a few cores."""
    return min(os.cpu_count() or 1, 4) if reads_compact(model) else os.cpu_count() or 1


def build(request: Request) -> Method:
    """Models, memories and plan of a request."""
    options, learner = request.options, request.learner
    if learner.schedule != "constant" and not learner.decay_steps:
        updates = options.steps * request.values.get("epochs", 1) * request.values.get("minibatches", 1)
        learner = type(learner)(**{**asdict(learner), "decay_steps": updates})
    how = {"dtype": options.dtype, "learner": learner}
    policy = load(options.model, lora=options.lora, seed=options.seed, **how)  # type: ignore[arg-type]
    key = int(mix(options.seed, "method"))
    return request.method(policy, request.task, request.judge, build=lambda name: load(name, **how), seed=key, **request.changes)  # type: ignore[arg-type]


def start(request: Request, listener: Listener | None = None) -> Run:
    """A new run in a folder of its own."""
    options = request.options
    stem = f"{Path(request.name.split(':')[0]).stem}-{Path(options.task).stem}"
    folder = RunFolder(Path(options.out) if options.out else next_folder(Path("runs"), stem))
    run = Run(request, folder, listener)
    folder.create()
    folder.write("config.json", config(request, torch.get_num_threads()))
    folder.write("versions.json", versions())
    run.tell("plan", {"folder": str(folder.path), "method": request.name, **asdict(options)})
    return run


def resume(path: Path, listener: Listener | None = None, *, at: str = "", judge: Any = None) -> Run:
    """Take up a run from its folder alone. Raises RunError or CheckpointError naming place and remedy."""
    folder = RunFolder(path)
    if not (path / "config.json").is_file():
        raise RunError("there is no run in this folder", where=str(path), expected="config.json")
    then = folder.read("config.json")
    gone = [p for p in then["files"] if not Path(p).is_file()]
    if gone:
        raise RunError("files of this run are gone", where=", ".join(gone), fix="put them back, or start anew")
    request = resolve(then["method"], {**then["said"], "out": str(path)}, judge=judge)
    check_unchanged(path, then, request)
    folder.take()
    try:
        run = Run(request, folder, listener)
        run.load(at)
    except BaseException:
        folder.release()
        raise
    return run


def versions() -> dict[str, str]:
    """What computed this."""
    packages = {n: importlib.metadata.version(n) for n in ("burnish", "torch", "transformers", "tokenizers", "numpy")}
    return {**packages, "python": platform.python_version(), "machine": platform.machine(), "system": platform.system()}


__all__ = ["Interrupted", "Rollouts", "Run", "build", "default_threads", "resume", "start", "versions"]
