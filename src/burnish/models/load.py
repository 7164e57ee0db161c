"""Models by name: the embedded family, a folder, or a hub id already on this disk. Paths are checked before torch is loaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ModelError, nearest
from .options import Learner

if TYPE_CHECKING:
    from .causal_lm import CausalLM

EMBEDDED = Path(__file__).parent / "embedded"
OTHERS = ("smollm2",)


def embedded() -> tuple[str, ...]:
    """Names of the models that ship with burnish."""
    return tuple(sorted(p.parent.name for p in EMBEDDED.glob("*/config.json")))


def reads_compact(name: str) -> bool:
    """Does it read the compact grammar of the embedded models? Exported runs say so in burnish.json."""
    note = Path(name.removeprefix("hf:")).expanduser() / "burnish.json"
    return name in embedded() or (note.is_file() and json.loads(note.read_text()).get("grammar") == "compact")


def locate(name: str) -> Path | str:
    """The folder of a model, or the hub id of `hf:owner/name`. Raises ModelError for what is not there."""
    if name in embedded():
        return EMBEDDED / name
    if name == "smollm2":
        from .smollm2 import converted

        return converted()
    word = name.removeprefix("hf:")
    folder = Path(word).expanduser()
    if folder.is_dir():
        return _complete(folder)
    if name.startswith("hf:") and word.count("/") == 1 and not word.startswith((".", "/", "~")):
        return word
    known = (*embedded(), *OTHERS)
    hint = nearest(name, known)
    fix = f"{hint}{'' if hint.endswith('?') else '.'} Or give the path of a Hugging Face folder, or hf:OWNER/NAME"
    raise ModelError("there is no such model", where=name, fix=fix)


def _complete(folder: Path) -> Path:
    """Refuse a folder that lacks a part, naming it. A folder of adapters needs no more than these."""
    if (folder / "adapter_config.json").is_file() and (folder / "adapter_model.safetensors").is_file():
        return folder
    if not (folder / "config.json").is_file():
        raise ModelError(
            "the folder has no config.json", where=str(folder), fix="give a folder written by save_pretrained, or a run's model/"
        )
    if not any((folder / n).is_file() for n in ("model.safetensors", "model.safetensors.index.json")):
        raise ModelError(
            "the folder has no weights", where=str(folder), expected="model.safetensors", fix="pickled .bin files are not read"
        )
    if not any((folder / n).is_file() for n in ("tokenizer.json", "tokenizer_config.json", "vocab.json")):
        fix = "save the tokenizer into the same folder: AutoTokenizer.from_pretrained(BASE).save_pretrained(FOLDER)"
        raise ModelError("the folder has no tokenizer", where=str(folder), expected="tokenizer.json", fix=fix)
    return folder


def load(name: str, *, learner: Learner | None = None, dtype: str = "float32", lora: int = 0, seed: int = 0) -> CausalLM:
    """A causal language model by name. `lora` > 0 trains adapters of that rank instead of the weights."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from .causal_lm import CausalLM
    from .lora import add_adapters, load_adapters

    where = locate(name)
    adapter = Path(str(where)) if (Path(str(where)) / "adapter_config.json").is_file() else None
    if adapter is not None:
        where = locate(str(json.loads((adapter / "adapter_config.json").read_text())["base_model_name_or_path"]))
    how = {"dtype": getattr(torch, dtype), "attn_implementation": "eager", "trust_remote_code": False, "use_safetensors": True}
    try:
        tokenizer = AutoTokenizer.from_pretrained(where, trust_remote_code=False)
        here = isinstance(where, Path)
        network, info = AutoModelForCausalLM.from_pretrained(where, local_files_only=here, output_loading_info=True, **how)
    except Exception as error:
        fix = (
            "is the folder complete, and of a causal language model?"
            if isinstance(where, Path)
            else "is it on this disk, or the network up?"
        )
        said = str(error).splitlines() or [""]
        raise ModelError(f"the model cannot be loaded ({type(error).__name__}: {said[0]})", where=str(where), fix=fix) from error
    lacking = sorted({*info["missing_keys"], *(str(k) for k in info.get("mismatched_keys", ()))})
    if lacking:  # transformers would draw these at random, with a warning
        raise ModelError(f"the weights cannot be loaded whole: {len(lacking)} are missing", where=str(where), seen=", ".join(lacking[:3]))
    model = CausalLM(network, tokenizer, name=name, learner=learner)
    model.load_value_head(Path(str(where)))
    if adapter is not None:
        load_adapters(model, adapter)
    elif lora:
        add_adapters(model, lora, seed=seed)
    return model
