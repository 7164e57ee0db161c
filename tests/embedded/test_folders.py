"""The shipped folders load in transformers and are what they claim to be."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import burnish
from burnish.formats import FORMATS
from burnish.tasks.base import generator
from burnish.tasks.registry import PARTS

EMBEDDED = Path(burnish.__path__[0]) / "models" / "embedded"
NAMES = ["tiny", "tiny-clean", "tiny-teacher"]


@pytest.fixture(scope="module", params=NAMES)
def folder(request: pytest.FixtureRequest) -> Path:
    return EMBEDDED / request.param


@pytest.fixture(scope="module")
def tokenizer(folder: Path):
    return AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def model(folder: Path):
    return AutoModelForCausalLM.from_pretrained(folder).eval()


def test_a_folder_is_under_eight_megabytes(folder: Path) -> None:
    assert sum(file.stat().st_size for file in folder.iterdir()) < 8e6


def test_the_configuration_says_what_a_loader_needs(model, tokenizer) -> None:
    assert model.config.vocab_size == len(tokenizer)
    assert model.config.eos_token_id == tokenizer.eos_token_id == tokenizer.convert_tokens_to_ids("<end>")
    assert tokenizer.pad_token_id not in (None, tokenizer.eos_token_id)
    assert model.config.max_position_embeddings >= 256
    assert model.dtype == torch.float32


def test_questions_and_answers_survive_the_tokenizer(tokenizer) -> None:
    for i in range(20):
        for name, task in PARTS.items():
            problem = task.problem(generator("tokens", name, i), 1 + i % 3)
            prompt = FORMATS["fix"].render(problem.question, {"draft": problem.meta["answer"], "critique": "@2>"})
            ids = tokenizer(prompt)["input_ids"]
            assert tokenizer.decode(ids) == prompt
            assert tokenizer.unk_token_id not in ids


def test_any_text_can_be_put_in(tokenizer) -> None:
    ids = tokenizer("Grüße, 世界\n\x00 🙂")["input_ids"]
    assert tokenizer.unk_token_id in ids
    assert max(ids) < len(tokenizer)


def test_the_chat_template_is_the_grammar(tokenizer) -> None:
    said = [{"role": "user", "content": "add1+2"}, {"role": "assistant", "content": "3"}, {"role": "user", "content": "ok"}]
    assert tokenizer.apply_chat_template(said, tokenize=False, add_generation_prompt=True) == "<q>add1+2<a>3<end><q>ok<a>"


def test_padding_and_unknown_are_practically_never_sampled(model, tokenizer) -> None:
    ids = tokenizer(["<q>add49+97<a>", "<q>hello<a>"], padding=True, return_tensors="pt")
    with torch.no_grad():
        probability = model(**ids).logits[:, -1].softmax(-1)
    assert probability[:, [tokenizer.pad_token_id, tokenizer.unk_token_id]].max() < 1e-3
    assert (probability > 1e-3).sum(-1).max() < 60
