"""train, resume, runs, eval and sample, for real on the embedded model; and what a script sees of them."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import SMALL

from burnish.cli import flags, group, progress
from burnish.errors import FeedbackError, Refused
from burnish.training.folder import RunFolder
from burnish.training.run import Interrupted

REPORTED = ["run", "method", "task", "model", "metric", "before", "after", "steps", "seed"]


@pytest.fixture
def run(trained, tmp_path):
    shutil.copytree(trained.path, tmp_path / "run")
    return tmp_path / "run"


# -- train
def test_the_last_line_for_scripts_is_one_object(trained):
    assert trained.out.count("\n") == 1
    assert list(trained.result) == REPORTED
    assert trained.result["steps"] == 2
    assert (Path(trained.result["run"]) / "report.html").is_file()


def test_progress_is_on_stderr_and_others_are_silent(trained):
    lines = trained.err.splitlines()
    assert lines[0].startswith("grpo on sort, model tiny, in ")
    assert lines[1].startswith("before: ")
    assert [line.split("  ")[0] for line in lines[2:4]] == ["step 1/2", "step 2/2"]
    for word in ("reward ", "length ", "entropy ", "loss ", "tokens/s", "left"):
        assert word in lines[3]
    assert lines[4].startswith("after: ")
    assert len(lines) == 5


def test_a_judge_of_ones_own_quietly(burnish, tmp_path):
    (tmp_path / "own.py").write_text("def short(answer):\n    return max(0.0, 1 - len(answer) / 16)\n")
    done = burnish("train", "reinforce", *SMALL, "--judge", "own.py:short", "-q")
    assert done.code == 0, done.err
    assert done.err == ""
    assert done.out.splitlines()[1:] == ["run:    runs/reinforce-sort-1", "report: runs/reinforce-sort-1/report.html"]


def test_a_judge_that_fails_fails_the_command_without_a_traceback(burnish, tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text("def broken(answer):\n    raise ValueError('no idea')\n")
    done = burnish("train", "grpo", *SMALL, "--judge", "own.py:broken", "--json", "-q")
    assert (done.code, done.out) == (1, "")
    assert "broken, row 0" in done.err
    assert "raised ValueError: no idea" in done.err
    assert "Traceback" not in done.err
    assert not RunFolder(tmp_path / "runs" / "grpo-sort-1")._lock.is_locked


# -- errors and exit codes
@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (Refused("no"), 2, "error: no\n"),
        (FeedbackError("a judge"), 1, "error: a judge\n"),
        (Interrupted(Path("runs/x")), 130, "go on with: burnish resume runs/x"),
        (KeyboardInterrupt(), 130, "stopped"),
        (ZeroDivisionError("by zero"), 1, "error: ZeroDivisionError: by zero (BURNISH_TRACEBACK=1 shows where)\n"),
        (OSError(errno.EPIPE, "gone"), 1, ""),
    ],
)
def test_errors_become_messages_and_exit_codes(burnish, monkeypatch, error, code, said):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("burnish.cli.describe.meant", fail)
    done = burnish("show", "grpo")
    assert done.code == code
    assert said in done.err
    assert "Traceback" not in done.err
    if code == 1 and said:
        monkeypatch.setenv("BURNISH_TRACEBACK", "1")
        assert "Traceback" in burnish("show", "grpo").err


def test_what_is_no_error_of_ours_passes():
    with pytest.raises(SystemExit):
        group.told(SystemExit(3))


# -- resume, runs
def test_resume_does_later_steps_again(burnish, run, trained):
    done = burnish("resume", run, "--at", "step-000000", "--json", "--quiet")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out) == {**trained.result, "run": str(run)}


def test_resume_names_what_is_missing(burnish, run):
    done = burnish("resume", "nowhere")
    assert done.code == 1
    assert "nowhere: there is no run in this folder" in done.err
    done = burnish("resume", run, "--at", "step-000001", "-q")
    assert done.code == 1
    assert "here: step-000000, step-000002" in done.err


def test_runs_tells_done_from_stopped_and_running(burnish, run, tmp_path):
    (tmp_path / "runs").mkdir()
    for name in ("a", "b", "c"):
        shutil.copytree(run, tmp_path / "runs" / name)
    (tmp_path / "runs" / "b" / "result.json").unlink()
    at_work = RunFolder(tmp_path / "runs" / "c")
    at_work.take()
    try:
        found = {r["run"]: r for r in json.loads(burnish("runs", "--json").out)}
        table = burnish("runs").out
    finally:
        at_work.release()
    assert {n: r["state"] for n, r in found.items()} == {"runs/a": "done", "runs/b": "stopped", "runs/c": "running"}
    assert (found["runs/a"]["step"], found["runs/a"]["steps"]) == (2, 2)
    assert found["runs/b"]["after"] is None
    assert [line.split()[0] for line in table.splitlines()] == ["run", *found]


def test_runs_of_nothing(burnish):
    assert burnish("runs").code == 0
    assert json.loads(burnish("runs", "--json").out) == []
    assert burnish("runs", "nowhere").code == 1


# -- eval, sample
def test_eval_of_a_run_repeats_its_last_evaluation(burnish, trained):
    done = burnish("eval", trained.path, "--json")
    assert done.code == 0, done.err
    said = json.loads(done.out)
    assert said["value"] == trained.result["after"]
    assert (said["task"], said["contexts"], said["judge"], said["metric"]) == ("sort", 16, "truth", "held-out sampled")
    assert "samples" not in said


def test_eval_of_a_model_on_another_task_and_judge(burnish, trained, tmp_path):
    (tmp_path / "own.py").write_text("def half(answer):\n    return 0.5\n")
    done = burnish("eval", "tiny", "--task", "mix", "--judge", "own.py:half", "--eval-size", 8, "--threads", 1)
    assert "tiny on mix: 0.5000 ± 0.0000" in done.out
    (tmp_path / "rows.jsonl").write_text('{"prompt": "sort21", "completion": "12"}\n')
    done = burnish("eval", trained.path, "--task", "rows.jsonl", "--threads", 1, "--json")
    assert json.loads(done.out)["metric"] == "held-out nll"


def test_sample_of_a_run_is_on_its_task_with_rewards(burnish, trained):
    done = burnish("sample", trained.path, "-n", 3, "--json")
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert len(rows) == 3
    assert all(r["prompt"].startswith("sort") and r["reward"] in (0.0, 1.0) for r in rows)
    assert burnish("sample", trained.path, "-n", 3, "--json").out == done.out


def test_sample_answers_prompts(burnish):
    done = burnish("sample", "tiny", "sort21", "max1,2", "-n", 2, "--temperature", 0, "--threads", 1)
    lines = done.out.splitlines()
    assert [line.split(" -> ")[0] for line in lines] == ["sort21"] * 2 + ["max1,2"] * 2
    assert lines[0] == lines[1]
    assert "reward" not in done.out
    assert done.err == ""


def test_a_decoding_run_is_built_again(burnish):
    assert burnish("train", "best-of-n", "--task", "sort", "--n", 2, "--eval-size", 8, "--threads", 1, "--out", "best", "-q").code == 0
    before = json.loads(burnish("eval", "best", "--threads", 1, "--json").out)
    assert before["value"] == json.loads(Path("best/result.json").read_text())["after"]


def test_a_run_without_its_model_or_judge_says_so(burnish, run):
    config = json.loads((run / "config.json").read_text())
    config["resolved"]["judge"] = "short"
    (run / "config.json").write_text(json.dumps(config))
    done = burnish("eval", run)
    assert done.code == 2
    assert "'short', was given in Python" in done.err
    shutil.rmtree(run / "model")
    done = burnish("sample", run)
    assert done.code == 1
    assert f"burnish resume {run}" in done.err


# -- the line itself
def test_flags_are_read_by_name():
    said = flags.read(["grpo", "--weight-decay", "-1", "--objective.low=0.1", "--json", "-q", "--out=--odd", "--last"])
    assert said.words == ["grpo"]
    assert said.options == {"weight_decay": "-1", "objective.low": "0.1", "out": "--odd", "last": None}
    assert said.switches == {"json", "quiet"}


def test_time_is_shown_as_a_clock():
    assert [progress.clock(s) for s in (0.4, 61, 3725)] == ["0:00", "1:01", "1:02:05"]


def test_a_terminal_gets_a_bar(monkeypatch, capsys):
    bar = progress.Bar()
    bar.steps = 3
    bar("before", {"sampled": 0.5, "standard_error": 0.1, "contexts": 4})
    bar("step", {"step": 1, "seconds": 0.5, "reward_mean": 0.25, "sampled_steps": 40})
    bar("after", {"nll": 0.5, "standard_error": 0.1})
    seen = capsys.readouterr().err
    assert "before: 0.5000 ± 0.1000" in seen
    assert "after: negative log-likelihood 0.5000" in seen


# -- in processes of their own
WITHOUT = """
import sys
from click.testing import CliRunner
from burnish.cli import main
for words in {commands}:
    done = CliRunner().invoke(main, words)
    assert done.exit_code == {code}, (words, done.output)
loaded = {{"torch", "transformers", "numpy", "rich"}} & set(sys.modules)
assert not loaded, loaded
"""
LIGHT = [["--help"], ["train", "--help"], ["train", "grpo", "--help"], ["list"], ["list", "--parts"], ["list", "--json"], ["show", "ppo"]]
LIGHT += [["show", "ordinal"], ["runs"], ["train", "ppo", "--dry-run"], ["--version"]]
REFUSED = [
    ["trian"],
    ["train"],
    ["train", "grpo", "--steps", "x", "--credit", "ordnal", "--temperature", "0"],
    ["eval", "tniy"],
    ["show", "x"],
]


@pytest.mark.parametrize(("commands", "code"), [(LIGHT, 0), (REFUSED, 2)], ids=["answers", "refusals"])
def test_nothing_heavy_is_loaded_for(commands, code, tmp_path):
    program = WITHOUT.format(commands=commands, code=code)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_control_c_saves_and_says_how_to_go_on(tmp_path):
    script = Path(sys.executable).with_name("burnish")
    words = [script, "train", "grpo", *SMALL, "--steps", "100000", "--out", "stopped"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment) as started:
        for line in started.stderr:
            if line.startswith("step 1/"):
                started.send_signal(signal.SIGINT)
                break
        rest = started.stderr.read()
        assert started.wait(60) == 130
        assert started.stdout.read() == ""
    assert rest.endswith("stopped and saved; go on with: burnish resume stopped\n")
    assert list((tmp_path / "stopped" / "checkpoints").glob("step-00*"))
