"""What goes wrong around a run ends with a message that names the place and the remedy, and nothing that was saved is lost."""

import json
import resource
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

import burnish
from burnish.errors import BurnishError, CheckpointError, DataError, FeedbackError, ModelError, Refused, RunError
from burnish.models.load import EMBEDDED
from burnish.training import checkpoint

SMALL = {"task": "sort", "prompts": 2, "group_size": 2, "eval_size": 4, "save_every": 1, "threads": 1}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A small finished run, copied by those who damage it."""
    out = tmp_path_factory.mktemp("finished") / "run"
    burnish.train("grpo", steps=2, out=str(out), **SMALL)
    return out


@pytest.fixture
def run(finished, tmp_path) -> Path:
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


@contextmanager
def no_file_larger_than(size: int):
    """A real limit of the operating system: writing beyond it fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_fills_while_saving_leaves_the_last_good_checkpoint(tmp_path):
    folder = tmp_path / "checkpoints"
    state = {"a": {"b": [1, 2.5, "x", None, True]}}
    checkpoint.write(folder, "step-000001", state, keep=2)
    import torch

    with no_file_larger_than(1000), pytest.raises(RunError) as error:
        checkpoint.write(folder, "step-000002", {"w": torch.zeros(10000)}, keep=2)
    assert "could not be written" in str(error.value)
    assert "last good checkpoint is" in str(error.value)
    assert str(folder / "step-000002") in str(error.value)
    assert checkpoint.newest(folder) == folder / "step-000001"
    assert checkpoint.read(folder / "step-000001") == state
    assert sorted(p.name for p in folder.iterdir()) == ["step-000001"]


def test_a_run_whose_disk_fills_goes_on_when_there_is_room_again(tmp_path):
    out, calls = tmp_path / "run", []

    def full_later(what, said):
        calls.append(what)
        if what == "step":
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

    with no_file_larger_than(resource.getrlimit(resource.RLIMIT_FSIZE)[0]), pytest.raises(RunError, match="could not be written"):
        burnish.train("grpo", steps=2, out=str(out), listener=full_later, **SMALL)
    resumed = burnish.resume(str(out))
    whole = burnish.train("grpo", steps=2, out=str(tmp_path / "whole"), **SMALL)
    assert resumed.method.time == whole.method.time == 2
    assert (out / "metrics.jsonl").read_bytes() == (tmp_path / "whole" / "metrics.jsonl").read_bytes()


@pytest.mark.parametrize("file", ["tensors.safetensors", "state.json", "digests.json"])
def test_a_truncated_checkpoint_is_named_and_an_earlier_one_goes_on(run, file):
    last = checkpoint.newest(run / "checkpoints")
    blob = (last / file).read_bytes()
    (last / file).write_bytes(blob[: len(blob) // 2])
    with pytest.raises(CheckpointError) as error:
        burnish.resume(str(run))
    assert str(last) in str(error.value)
    assert "--at step-000001" in str(error.value)
    again = burnish.resume(str(run), at="step-000001")
    assert again.method.time == 2


def test_a_flipped_bit_in_a_checkpoint_is_found(run):
    path = checkpoint.newest(run / "checkpoints") / "tensors.safetensors"
    blob = bytearray(path.read_bytes())
    blob[len(blob) // 2] ^= 1
    path.write_bytes(bytes(blob))
    with pytest.raises(CheckpointError, match="does not match its digest"):
        burnish.resume(str(run))


def test_a_checkpoint_that_is_not_there_lists_those_that_are(run):
    with pytest.raises(CheckpointError, match="step-000002"):
        burnish.resume(str(run), at="step-000007")


def test_a_run_is_never_written_over(run):
    before = (run / "metrics.jsonl").read_bytes()
    with pytest.raises(RunError, match="burnish resume"):
        burnish.train("grpo", steps=2, out=str(run), **SMALL)
    assert (run / "metrics.jsonl").read_bytes() == before


def test_two_processes_never_share_a_folder(run):
    from burnish.training.folder import RunFolder

    first = RunFolder(run)
    first.take()
    with pytest.raises(RunError, match="another process"):
        burnish.resume(str(run))
    first.release()
    assert burnish.resume(str(run)).method.time == 2


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(RunError, match="there is no run"):
        burnish.resume(str(tmp_path))
    with pytest.raises(RunError, match="there is no run"):
        burnish.resume(str(tmp_path / "nowhere"))


def test_a_changed_setting_is_refused_by_name(run):
    config = json.loads((run / "config.json").read_text())
    config["resolved"]["group_size"] = "5"
    (run / "config.json").write_text(json.dumps(config))
    with pytest.raises(RunError, match="group_size"):
        burnish.resume(str(run))


def test_a_model_folder_without_tokenizer_weights_or_config_names_what_is_missing(tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(EMBEDDED / "tiny", folder)
    for missing, word in (("tokenizer.json", "no tokenizer"), ("model.safetensors", "no weights"), ("config.json", "config.json")):
        for name in ("tokenizer.json", "tokenizer_config.json") if missing == "tokenizer.json" else (missing,):
            (folder / name).unlink()
        with pytest.raises(Refused, match=word) as error:
            burnish.train("grpo", model=str(folder), out=str(tmp_path / "out"), **SMALL)
        assert str(folder) in str(error.value)
    assert not (tmp_path / "out").exists()


def test_damaged_weights_are_refused_before_anything_is_written(tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(EMBEDDED / "tiny", folder)
    (folder / "model.safetensors").write_bytes(b"\x08\x00\x00\x00\x00\x00\x00\x00{}      ")
    with pytest.raises(ModelError, match="cannot be loaded whole"):
        burnish.train("grpo", model=str(folder), out=str(tmp_path / "out"), **SMALL)
    assert not (tmp_path / "out").exists()


def raises(answer):
    raise ZeroDivisionError("by nought")


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        (raises, "raised ZeroDivisionError: by nought"),
        (lambda answer: float("nan"), "what is no reward"),
        (lambda answer: float("inf"), "what is no reward"),
        (lambda answer: {"score": 0.0}, "what is no reward"),
        (lambda answer: "good", "what is no reward"),
    ],
)
def test_a_reward_function_that_fails_is_named_with_row_and_sample(tmp_path, judge, said):
    with pytest.raises(FeedbackError, match=said) as error:
        burnish.train("grpo", steps=1, out=str(tmp_path / "run"), judge=judge, **SMALL)
    assert "row 0, context 'sort.1/" in str(error.value)
    assert "fix:" in str(error.value)


def test_a_judge_that_abstains_from_everything_trains_nothing_and_breaks_nothing(tmp_path):
    with pytest.raises(BurnishError, match="nobody said anything"):
        burnish.train("grpo", steps=1, out=str(tmp_path / "run"), judge=lambda answer: None, **SMALL)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no rows"),
        ("{}\n", "no prompt"),
        ('{"question": "a"}\n', "--columns prompt=question"),
        ('{"prompt": "a"}\nnot json\n', "data.jsonl:2"),
        ('{"prompt": ""}\n', "empty"),
        ("[1]\n", "no JSON object"),
        ('{"prompt": "a", "completion": 3}\n', "completion"),
    ],
)
def test_a_bad_data_file_names_file_and_line(tmp_path, text, said):
    path = tmp_path / "data.jsonl"
    path.write_text(text)
    with pytest.raises((DataError, Refused), match=said):
        burnish.train("sft", steps=1, out=str(tmp_path / "run"), **{**SMALL, "task": str(path)})
    assert not (tmp_path / "run").exists()


def test_a_missing_data_file_and_reward_file_are_named(tmp_path):
    with pytest.raises(Refused) as error:
        burnish.train("grpo", task=str(tmp_path / "none.jsonl"), judge=str(tmp_path / "none.py:f"), group_siz=3)
    said = str(error.value)
    assert "none.jsonl" in said
    assert "did you mean 'group_size'?" in said


def test_a_run_is_taken_up_from_another_folder_and_only_with_the_files_it_began_with(tmp_path, monkeypatch):
    (tmp_path / "begun").mkdir()
    monkeypatch.chdir(tmp_path / "begun")
    Path("mine.py").write_text("def short(answer):\n    return 1.0 / (1 + len(answer))\n")
    Path("rows.jsonl").write_text("".join(json.dumps({"prompt": f"sort{i}1"}) + "\n" for i in range(9)))
    options = {**SMALL, "task": "rows.jsonl", "judge": "mine.py:short"}
    burnish.train("grpo", steps=2, out="run", **options)
    monkeypatch.chdir(tmp_path)
    assert burnish.resume("begun/run").method.time == 2
    Path("begun/mine.py").write_text("def short(answer):\n    return 2.0\n")
    with pytest.raises(RunError, match="changed since") as error:
        burnish.resume("begun/run")
    assert "mine.py" in str(error.value)
    Path("begun/mine.py").unlink()
    with pytest.raises(RunError, match="gone"):
        burnish.resume("begun/run")
