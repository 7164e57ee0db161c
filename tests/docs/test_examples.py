"""The scripts under examples/ run as they are, on a small budget."""

import importlib.util
from pathlib import Path

import torch

import burnish

EXAMPLES = Path(__file__).parents[2] / "examples"


def loaded(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_own_reward_trains(tmp_path, capsys):
    run = loaded("own_reward").main(steps=1, prompts=2, eval_size=8, threads=1, out=str(tmp_path / "run"))
    assert run.method.ledger.accounts["queries:sorted_digits+short"] == 2 * 8
    assert "held-out reward" in capsys.readouterr().out


def test_the_median_is_the_baseline_of_each_group():
    reward, group = torch.tensor([1.0, 0.0, 0.0, 5.0, 7.0, 6.0, 9.0]), torch.tensor([1, 1, 1, 2, 2, 2, -1])
    advantage = loaded("my_method").above_median(reward, group)
    assert advantage.tolist() == [1.0, 0.0, 0.0, -1.0, 1.0, 0.0, 0.0]


def test_the_own_method_is_its_parent_with_another_credit(tmp_path):
    file = f"{EXAMPLES / 'my_method.py'}:MedianGRPO"
    run = burnish.train(file, task="sort", steps=1, prompts=2, eval_size=8, threads=1, out=str(tmp_path / "run"))
    assert run.method.credit.name == "above_median"
    assert run.method.objective.name == "clip"
