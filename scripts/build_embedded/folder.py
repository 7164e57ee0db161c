"""The Hugging Face folder of an embedded model: tokenizer, configuration, weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM

from burnish.tasks.registry import PARTS

SPECIAL = ("<pad>", "<end>", "<unk>")
CONTROLS = (
    "<q>", "<a>", "<sys>", "<redo>", "<crit>", "<fix>", "<error>", "<b>", "<judge>", "<verdict>", "<score>", "<item>", "<items>",
    "<hint>", "<goal>", "<dir>", "<tools>", "<call>", "<result>", "<user>", "<reflect>",
)  # fmt: skip
WORDS = (*PARTS, "len", "first", "has", "no", "ok")  # "last" is a task too
CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))
CHAT = (
    "{% for message in messages %}"
    "{% if message['role'] == 'user' %}{{ '<q>' + message['content'] }}"
    "{% elif message['role'] == 'assistant' %}{{ '<a>' + message['content'] + '<end>' }}"
    "{% elif message['role'] == 'tool' %}{{ '<result>' + message['content'] }}"
    "{% else %}{{ '<sys>' + message['content'] }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<a>' }}{% endif %}"
)


def build_tokenizer() -> Tokenizer:
    """One token per character of printable ASCII, per word of the grammar and per control; anything else is `<unk>`."""
    vocabulary = list(dict.fromkeys((*SPECIAL, *CONTROLS, *WORDS, *CHARACTERS)))
    tokenizer = Tokenizer(models.WordLevel({token: i for i, token in enumerate(vocabulary)}, unk_token="<unk>"))
    words = "|".join(sorted(set(WORDS), key=lambda word: (-len(word), word)))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(f"{words}|[\\s\\S]"), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in SPECIAL])
    tokenizer.add_tokens([AddedToken(token, normalized=False, special=False) for token in CONTROLS])
    return tokenizer


def tokenizer_config() -> dict[str, Any]:
    """What `AutoTokenizer` must know besides the vocabulary."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": "<pad>",
        "eos_token": "<end>",
        "unk_token": "<unk>",
        "padding_side": "left",
        "model_max_length": 256,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT,
    }


def new_model(seed: int) -> LlamaForCausalLM:
    """A model of the family, randomly initialised."""
    torch.manual_seed(seed)
    vocabulary = build_tokenizer().get_vocab()
    config = LlamaConfig(
        vocab_size=len(vocabulary), hidden_size=128, num_hidden_layers=6, num_attention_heads=4, num_key_value_heads=2,
        intermediate_size=384, tie_word_embeddings=True, max_position_embeddings=256, attention_dropout=0.0,
        bos_token_id=None, eos_token_id=vocabulary["<end>"], pad_token_id=vocabulary["<pad>"],
    )  # fmt: skip
    config._attn_implementation = "eager"
    return LlamaForCausalLM(config)


def save_folder(model: LlamaForCausalLM, folder: Path) -> None:
    """Write a folder that `AutoModelForCausalLM` and `AutoTokenizer` load."""
    folder.mkdir(parents=True, exist_ok=True)
    model.generation_config.do_sample = True
    model.save_pretrained(folder)
    build_tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "model.safetensors").chmod(0o644)
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config(), indent=2) + "\n")
