"""A small random language model and a lively reward, so that groups disagree and every method has something to learn."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoTokenizer, LlamaConfig

from burnish.feedback.function import Functions
from burnish.methods.offline import Offline
from burnish.methods.registry import method
from burnish.models.causal_lm import CausalLM
from burnish.models.load import EMBEDDED
from burnish.models.options import Learner
from burnish.tasks.registry import TASKS
from burnish.tasks.streams import TextStream


def lively(answer: str) -> float:
    """The share of digits in an answer."""
    return sum(c.isdigit() for c in answer) / max(1, len(answer))


@pytest.fixture(scope="session")
def tokenizer():
    return AutoTokenizer.from_pretrained(EMBEDDED / "tiny")


@pytest.fixture
def small(tokenizer):
    """small(dtype=, seed=, **learner): a language model of two layers with dropout configured on purpose."""

    def make(*, dtype=torch.float32, seed=1, **learner):
        size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
        config = LlamaConfig(
            vocab_size=len(tokenizer), attention_dropout=0.1, tie_word_embeddings=True, max_position_embeddings=256, **size
        )
        return CausalLM.random(config, tokenizer, seed=seed, learner=Learner(**learner), dtype=dtype)

    return make


@pytest.fixture
def made(small):
    """made(name, **changes): a registered method on the small model, 3 contexts of a sorting task."""

    def make(name, *, judge=None, seed=0, dtype=torch.float32, lr=1e-3, micro_batch=0, **changes):
        task = TextStream(TASKS["sort"](), max_steps=6)
        cls = method(name)
        policy = small(dtype=dtype, lr=lr, micro_batch=micro_batch)
        size = {"group_size": 4} if hasattr(cls, "group_size") and not issubclass(cls, Offline) else {}
        return cls(policy, task, Functions([judge or lively]), seed=seed, **{"prompts": 3, **size, **changes})

    return make
