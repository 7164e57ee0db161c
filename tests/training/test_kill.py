"""A run that is killed at random moments and taken up again ends with the same bytes as one that never was."""

import hashlib
import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import burnish

SAME = ("metrics.jsonl", "rollouts.jsonl", "ledger.json", "evaluations.json", "model/model.safetensors")
SIZE = {"task": "sort", "prompts": 2, "group_size": 2, "eval_size": 8, "save_every": 2, "show_every": 3, "warmup": 5, "threads": 1}


def flags(options):
    return [x for n, v in options.items() for x in (f"--{n.replace('_', '-')}", str(v))]


def digests(folder: Path) -> dict[str, str]:
    return {n: hashlib.sha256((folder / n).read_bytes().replace(str(folder).encode(), b"")).hexdigest() for n in SAME}


def start(*arguments):
    command = [sys.executable, "-m", "burnish", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def killed_until_done(name, steps, out, kills, chance, options):
    """Start, kill somewhere between two steps of the log, take up, kill again; then let it end. The number of kills that hit it alive."""
    hits, process = 0, start("train", name, "--steps", str(steps), "--out", str(out), "--quiet", *flags(options))
    for _ in range(kills):
        wanted, began = chance.randrange(1, steps), time.monotonic()
        while process.poll() is None and time.monotonic() - began < 60:
            log = out / "metrics.jsonl"
            if log.exists() and log.read_bytes().count(b"\n") >= wanted:
                break
            time.sleep(0.005)
        time.sleep(chance.random() * 0.05)
        hits += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if not (out / "config.json").exists():
            process = start("train", name, "--steps", str(steps), "--out", str(out), "--quiet", *flags(options))
        else:
            process = start("resume", str(out), "--quiet")
    said = process.communicate(timeout=300)
    assert process.returncode == 0, said[1][-2000:]
    return hits


def compared(name, tmp_path, steps, kills, seed, **more):
    options = {**SIZE, **more}
    whole = tmp_path / "whole"
    burnish.train(name, steps=steps, out=str(whole), **options)
    out = tmp_path / "killed"
    hits = killed_until_done(name, steps, out, kills, random.Random(seed), options)
    assert digests(out) == digests(whole)
    assert len((out / "metrics.jsonl").read_text().splitlines()) == steps
    assert json.loads((out / "result.json").read_text())["steps"] == steps
    return hits


def test_one_kill_leaves_no_trace(tmp_path):
    assert compared("grpo", tmp_path, steps=40, kills=1, seed=1) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ppo", "dapo", "rloo", "remax", "raft", "reinforce"])
def test_many_kills_leave_no_trace(tmp_path, name):
    more = {"epochs": 2, "minibatches": 2} if name == "ppo" else {}
    assert compared(name, tmp_path, steps=60, kills=6, seed=len(name), **more) >= 1


@pytest.mark.slow
def test_many_kills_leave_no_trace_with_adapters(tmp_path):
    assert compared("grpo", tmp_path, steps=60, kills=5, seed=3, lora=4) >= 1
