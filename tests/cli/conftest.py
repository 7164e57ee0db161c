import json
from types import SimpleNamespace

import pytest
import torch
from command_line import SMALL, called


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def burnish(tmp_path, monkeypatch):
    """The command line in an empty directory."""
    monkeypatch.chdir(tmp_path)
    return called


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A small finished run, and what the command printed."""
    out = tmp_path_factory.mktemp("trained") / "run"
    done = called("train", "grpo", *SMALL, "--out", out, "--json")
    assert done.code == 0, done.err
    return SimpleNamespace(path=out, result=json.loads(done.out.splitlines()[-1]), **vars(done))
