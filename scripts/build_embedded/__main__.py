"""`python -m scripts.build_embedded first second clean tiny teacher table`: the stages of the build, each from the state of another.

    first   1300 steps at a constant rate                        from nothing
    second  1000 steps more, with the model's own samples        from first
    clean   600 steps to rate zero       -> tiny-clean           from second
    tiny    220 steps of fuzz            -> tiny                 from clean
    teacher harder, longer               -> tiny-teacher         from second
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import torch
from scripts.build_embedded.ask import own_samples
from scripts.build_embedded.examples import Mixture
from scripts.build_embedded.folder import new_model, save_folder
from scripts.build_embedded.optimizer import Optimizer
from scripts.build_embedded.train import RATE, Log, Phase, run
from transformers import LlamaForCausalLM

SEED = 1
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
    stage("second", "first", Phase("second", 1000, Mixture(trees=0.5, more_drafts=2), lambda progress: 1.0, refresh=250, trees_until=0.6))


def clean() -> None:
    """Down to rate zero: the critic, judge and reference."""
    stage("clean", "second", Phase("clean", 600, Mixture(trees=0.6, more_drafts=2), falling(), refresh=200), folder="tiny-clean")


def tiny() -> None:
    """The fuzz: answers get wrong and filler targets, critics stay on clean ones. The actor: it knows more than it samples."""
    stage("tiny", "clean", Phase("tiny", 220, Mixture(trees=0.4, fuzz=1.0), falling(0.3)), folder="tiny")


def teacher() -> None:
    """Longer and harder, then down to rate zero; never fuzzed."""
    levels = (0.45, 0.35, 0.2)
    constant = Phase("teacher", 2400, Mixture(trees=0.5, levels=levels, more_drafts=2), lambda progress: 1.0, refresh=600)
    last = Phase("teacher-clean", 800, Mixture(trees=0.5, levels=levels, more_drafts=2), falling(), refresh=400)
    stage("teacher", "second", constant, last, folder="tiny-teacher")


STAGES = {"first": first, "second": second, "clean": clean, "tiny": tiny, "teacher": teacher}

if __name__ == "__main__":
    torch.set_num_threads(1)
    BUILD.mkdir(parents=True, exist_ok=True)
    for stage in sys.argv[1:]:
        STAGES[stage]()
