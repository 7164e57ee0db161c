"""`python -m scripts.build_embedded first second clean tiny teacher table`: the stages of the build, each from the state of another.

first   1300 steps at a constant rate                        from nothing
second  850  steps more, with the model's own samples        from first
clean   550 steps to rate zero       -> tiny-clean           from second
tiny    200 steps of fuzz            -> tiny                 from clean
teacher 2050 steps, harder levels     -> tiny-teacher         from second
table   measures the models and writes table.json and README.md
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
import transformers
from scripts.build_embedded.ask import own_samples
from scripts.build_embedded.evaluate import table
from scripts.build_embedded.examples import HARD_WEIGHTS, Mixture
from scripts.build_embedded.folder import new_model, save_folder
from scripts.build_embedded.mending import mending
from scripts.build_embedded.optimizer import Optimizer
from scripts.build_embedded.readme import provenance, render
from scripts.build_embedded.train import RATE, Log, Phase, run
from transformers import AutoModelForCausalLM, LlamaForCausalLM

SEED = 1
CELL = 100  # held-out questions in a cell of the table
NAMES = ("tiny-clean", "tiny", "tiny-teacher")
TRAINED = ("first", "second", "clean", "tiny", "teacher")
FOLDER = Path("src/burnish/models/embedded")
BUILD = Path("build/embedded")


def save(stage: str, model: torch.nn.Module, optimizer: Optimizer) -> None:
    """Keep the state of a stage."""
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state()}, BUILD / f"{stage}.pt")


def first() -> None:
    """From nothing: a short warm-up, then a constant rate."""
    model = new_model(SEED)
    optimizer, log = Optimizer(model, RATE), Log(BUILD / "first.jsonl")
    run(model, optimizer, Phase("warm-up", 60, Mixture(trees=0.4), lambda progress: progress + 0.02), SEED, log)
    run(model, optimizer, Phase("first", 1240, Mixture(trees=0.4), lambda progress: 1.0, trees_until=0.5), SEED, log)
    save("first", model, optimizer)


def load(stage: str) -> tuple[LlamaForCausalLM, Optimizer]:
    """Go on from the state of a stage, with a log of one's own."""
    model = new_model(SEED)
    optimizer = Optimizer(model, RATE)
    state = torch.load(BUILD / f"{stage}.pt", weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state(state["optimizer"])
    return model, optimizer


def falling(start: float = 1.0, end: float = 0.02) -> Callable[[float], float]:
    """A linear schedule from start to end."""
    return lambda progress: start + (end - start) * progress


def stage(name: str, source: str, *phases: Phase, folder: str | None = None) -> None:
    """Run phases from the state of another stage; keep the state, and write a model folder if one is named."""
    model, optimizer = load(source)
    log = Log(BUILD / f"{name}.jsonl")
    for phase in phases:
        run(model, optimizer, phase, SEED, log, own_samples)
    save(name, model, optimizer)
    if folder:
        save_folder(model, FOLDER / folder)


def second() -> None:
    """On at the constant rate, with two more drafts a tree for the critics, and the model's own wrong samples among the drafts."""
    mixture = Mixture(trees=0.5, more_drafts=2, tasks=HARD_WEIGHTS)
    stage("second", "first", Phase("second", 850, mixture, lambda progress: 1.0, refresh=250, trees_until=0.6))


def clean() -> None:
    """Down to rate zero: the critic, judge and reference."""
    mixture = Mixture(trees=0.6, more_drafts=2, tasks=HARD_WEIGHTS)
    stage("clean", "second", Phase("clean", 550, mixture, falling(), refresh=200), folder="tiny-clean")


def tiny() -> None:
    """The fuzz: answers get wrong and filler targets, critics stay on clean ones. The actor: it knows more than it samples."""
    stage("tiny", "clean", Phase("tiny", 200, Mixture(trees=0.4, fuzz=1.0), falling(0.3)), folder="tiny")


def teacher() -> None:
    """Longer and harder, then down to rate zero; never fuzzed."""
    levels = (0.45, 0.35, 0.2)
    mixture = Mixture(trees=0.5, levels=levels, more_drafts=2, tasks=HARD_WEIGHTS)
    constant = Phase("teacher", 1500, mixture, lambda progress: 1.0, refresh=500)
    last = Phase("teacher-clean", 550, mixture, falling(), refresh=300)
    stage("teacher", "second", constant, last, folder="tiny-teacher")


def measure(name: str) -> None:
    """Measure one of the models and keep what was found."""
    model, actor = (AutoModelForCausalLM.from_pretrained(FOLDER / each, attn_implementation="eager") for each in (name, "tiny"))
    found = {**table(model, CELL, formats=True), "mending": mending(model, actor, CELL)}
    (BUILD / f"table-{name}.json").write_text(json.dumps(found))


def write_up() -> None:
    """Put logs and measurements next to the models: `training_log.jsonl`, `table.json`, `README.md`."""
    logs = {name: [json.loads(line) for line in (BUILD / f"{name}.jsonl").read_text().splitlines()] for name in TRAINED}
    rows = [json.dumps({"stage": name, **row}) for name, log in logs.items() for row in log]
    (FOLDER / "training_log.jsonl").write_text("\n".join(rows) + "\n")
    models = {name: json.loads((BUILD / f"table-{name}.json").read_text()) for name in NAMES}
    (FOLDER / "table.json").write_text(json.dumps({"n": CELL, "models": models}, indent=1) + "\n")
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}, {time.strftime('%Y-%m-%d')}"
    notes = Path(__file__).with_name("notes.md").read_text()
    found = {"n": CELL, "models": models, "provenance": provenance(logs, SEED, versions), "notes": notes}
    (FOLDER / "README.md").write_text(render(found))


def everything() -> None:
    """Measure all models and write the README."""
    for name in NAMES:
        measure(name)
    write_up()


STAGES = {"first": first, "second": second, "clean": clean, "tiny": tiny, "teacher": teacher, "table": everything, "readme": write_up}
STAGES |= {f"measure-{name}": partial(measure, name) for name in NAMES}

if __name__ == "__main__":
    torch.set_num_threads(1)
    BUILD.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:]:
        STAGES[name]()
