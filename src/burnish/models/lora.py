"""Low-rank adapters: W x + (alpha/r) B A x with W never touched. Files are peft's. Hu et al. 2021, arXiv 2106.09685."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ..errors import ModelError
from ..types.chance import generator, mix

if TYPE_CHECKING:
    from .causal_lm import CausalLM

ALPHA_OVER_RANK = 2.0


class Adapted(nn.Module):
    """A linear layer with an adapter. B starts at 0, so nothing changes until it learns."""

    def __init__(self, base: nn.Module, rank: int, scale: float, private: torch.Generator):
        super().__init__()
        self.base, self.scale = base, scale
        weight: Tensor = base.weight  # type: ignore[assignment]
        out, into = reversed(weight.shape) if transposed(base) else weight.shape
        bound = math.sqrt(3.0 / into)
        start = (torch.rand(rank, into, generator=private, dtype=torch.float32) * 2 - 1) * bound
        self.lora_A = nn.Parameter(start.to(weight.dtype))
        self.lora_B = nn.Parameter(torch.zeros(out, rank, dtype=weight.dtype))

    def forward(self, x: Tensor) -> Tensor:
        low = nn.functional.linear(nn.functional.linear(x, self.lora_A), self.lora_B)
        out: Tensor = self.base(x) + self.scale * low
        return out

    @torch.no_grad()
    def merged(self) -> nn.Module:
        """The plain layer that computes the same."""
        plain = copy.deepcopy(self.base)
        change = self.scale * (self.lora_B @ self.lora_A)
        plain.weight.data += change.T if transposed(plain) else change  # type: ignore[operator, union-attr]
        return plain


def transposed(layer: nn.Module) -> bool:
    """GPT-2's Conv1D keeps its weight as (in, out)."""
    return type(layer).__name__ == "Conv1D"


def add_adapters(model: CausalLM, rank: int, *, scale: float = ALPHA_OVER_RANK, seed: int = 0) -> None:
    """Freeze the weights of a model and give every linear layer of its body an adapter of this rank, drawn from a private generator."""
    for p in model.network.parameters():
        p.requires_grad_(False)
        p.is_base = True  # copies of the model share it
    private = generator(mix(seed, "adapters"))
    layers = [(n, m) for n, m in model.body.named_modules() if isinstance(m, nn.Linear) or transposed(m)]
    for name, layer in layers:
        _put(model.body, name, Adapted(layer, rank, scale, private))


def adapted(network: nn.Module) -> Iterator[tuple[str, Adapted]]:
    """Every adapted layer by its name."""
    return ((n, m) for n, m in network.named_modules() if isinstance(m, Adapted))


def merged(network: Any) -> Any:
    """A plain copy of the network with its adapters folded in; the network itself where it has none."""
    if next(adapted(network), None) is None:
        return network
    plain = copy.deepcopy(network)
    for name, layer in list(adapted(plain)):
        _put(plain, name, layer.merged())
    return plain


def save_adapters(network: nn.Module, folder: Path, base: str) -> None:
    """Write adapter_config.json and adapter_model.safetensors as peft does."""
    layers = dict(adapted(network))
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {
        f"base_model.model.{n}.lora_{x}.weight": getattr(m, f"lora_{x}").detach().contiguous() for n, m in layers.items() for x in "AB"
    }
    save_file(tensors, folder / "adapter_model.safetensors")
    first = next(iter(layers.values()))
    rank = first.lora_A.shape[0]
    said = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": rank, "lora_alpha": rank * first.scale, "bias": "none", "lora_dropout": 0.0}
    said |= {"target_modules": sorted({n.rpartition(".")[2] for n in layers}), "base_model_name_or_path": base, "inference_mode": True}
    said |= {"fan_in_fan_out": transposed(first.base)}
    (folder / "adapter_config.json").write_text(json.dumps(said, indent=2) + "\n")


def load_adapters(model: CausalLM, folder: Path) -> None:
    """Give a model the adapters that lie in a folder. Raises ModelError when they are of another model."""
    said = json.loads((folder / "adapter_config.json").read_text())
    if said.get("peft_type") != "LORA" or said.get("use_dora"):
        raise ModelError("only plain LoRA adapters can be read", where=str(folder), seen=said.get("peft_type"))
    held = load_file(folder / "adapter_model.safetensors")
    add_adapters(model, said["r"], scale=said["lora_alpha"] / said["r"])
    for name, layer in list(adapted(model.network)):
        mine = {x: held.pop(f"base_model.model.{name}.lora_{x}.weight", None) for x in "AB"}
        if mine["A"] is None or mine["B"] is None:
            _put(model.network, name, layer.base)  # that layer has no adapter
            continue
        for x, value in mine.items():
            mine_now = getattr(layer, f"lora_{x}")
            if value is None or value.shape != mine_now.shape:
                raise ModelError(
                    "the adapter is of another model", where=str(folder), seen=f"{name}: {value.shape if value is not None else None}"
                )
            mine_now.data.copy_(value)
    if held:
        raise ModelError("the adapter names layers that this model lacks", where=str(folder), seen=", ".join(list(held)[:3]))


def _put(root: nn.Module, name: str, layer: nn.Module) -> None:
    parent, _, last = name.rpartition(".")
    setattr(root.get_submodule(parent), last, layer)
