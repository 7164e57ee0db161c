"""The one-file example and the library are two writings of one method: they must draw the same answers and learn the same weights."""

import importlib.util
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from burnish.training.request import resolve
from burnish.training.run import build

EXAMPLE = Path(__file__).parents[2] / "examples" / "from_scratch.py"


@pytest.fixture(scope="module")
def scratch():
    spec = importlib.util.spec_from_file_location("from_scratch", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def letters_in_order(answer, reference):
    """A reward that every model earns some of, trained or not."""
    pairs = list(pairwise(answer))
    return sum(a <= b for a, b in pairs) / max(len(pairs), 1)


def method_of_burnish(scratch, judge):
    """What the command in the example's docstring builds, in float64 so that only the mathematics can differ."""
    words = next(line.split() for line in scratch.__doc__.splitlines() if line.startswith("    burnish train "))
    said = {flag.removeprefix("--").replace("-", "_"): value for flag, value in zip(words[3::2], words[4::2], strict=True)}
    return build(resolve(words[2], said | {"dtype": "float64"}, judge=judge))


def test_it_imports_no_burnish():
    text = EXAMPLE.read_text()
    assert "import burnish" not in text
    assert "from burnish" not in text


def test_it_draws_the_same_ids_and_learns_the_same_weights(scratch):
    method = method_of_burnish(scratch, letters_in_order)
    model, tokenizer = scratch.load(torch.float64)
    moved = [p.detach().clone() for p in model.parameters()]
    for happened in scratch.train(model, tokenizer, steps=2, reward=letters_in_order):
        batch = method.produce()
        _same_table(batch, happened["groups"])
        learnt, metrics = method.consume(batch)
        ours = torch.cat([g["advantage"] for g in happened["groups"]])
        torch.testing.assert_close(learnt.advantage[:, 0], ours, rtol=0, atol=1e-9)
        assert metrics["clip"] == pytest.approx(sum(happened["losses"]) / scratch.EPOCHS, abs=1e-6)
        assert metrics["gradient_norm"] == pytest.approx(sum(happened["gradient_norms"]) / scratch.EPOCHS, rel=1e-5)
        assert happened["losses"][1] < -1e-5  # the second update sees ratios other than 1
    theirs = dict(method.policy.network.named_parameters())
    for name, mine in model.named_parameters():
        torch.testing.assert_close(mine, theirs[name], rtol=0, atol=1e-5)  # norms and softmax round in float32; Adam enlarges it
    assert max(float((a - b).detach().abs().max()) for a, b in zip(moved, model.parameters(), strict=True)) > 1e-4


def _same_table(batch, groups):
    for number, group in enumerate(groups):
        rows = batch.select(torch.arange(len(group["tokens"])) + number * len(group["tokens"]))
        L = group["tokens"].shape[1]
        assert torch.equal(rows.mask[:, :L], group["mask"])
        assert not rows.mask[:, L:].any()
        drawn = group["mask"]
        assert torch.equal(rows.steps[:, :L][drawn], group["tokens"][drawn])
        torch.testing.assert_close(rows.sampled_logp[:, :L][drawn], group["sampled_logp"][drawn], rtol=0, atol=1e-5)
        assert rows.text == group["answers"]
        assert torch.equal(rows.reward, group["rewards"])


def test_its_problems_are_the_stream_of_the_command(scratch):
    from burnish.tasks.registry import TASKS
    from burnish.tasks.streams import TextStream

    for number, context in enumerate(TextStream(TASKS["sort"]()).contexts(0, 40)):
        assert scratch.problem(number) == (context.id, context.prompt, context.meta["answer"])
        assert scratch.reward(context.meta["answer"], context.meta["answer"]) == 1.0
