"""Causal language models: any Hugging Face decoder with full attention. Texts become ids here, and the shift by one happens here, once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ..errors import ModelError
from ..types.chance import generator, mix
from ..types.context import Context, Rendered
from ..types.table import Rollouts
from .base import Model
from .decoder import Decoder
from .lora import merged, save_adapters
from .options import Learner
from .packing import trees


class CausalLM(Model):
    """A transformers model and its tokenizer. A step is a token.

    The head sees only states that were asked for. Ids that the tokenizer cannot write, and padding unless it ends answers, have
    probability 0. `value` is a linear head on the same body, 0 at first."""

    def __init__(self, network: Any, tokenizer: Any, *, name: str = "", learner: Learner | None = None, check: bool = True):
        super().__init__(learner)
        self.network, self.tokenizer, self.name = network.eval(), tokenizer, name  # eval: no dropout, in training either
        self.body, self.head = network.base_model, network.get_output_embeddings()
        config = network.config
        self.cache_word = "cache" if "cache" in inspect.signature(self.body.forward).parameters else "past_key_values"
        self.worth = nn.Linear(config.hidden_size, 1, dtype=network.dtype)
        nn.init.zeros_(self.worth.weight)
        nn.init.zeros_(self.worth.bias)
        self.ends = _ends(network, tokenizer)
        banned = list(range(len(tokenizer), self.head.weight.shape[0]))
        banned += [tokenizer.pad_token_id] if tokenizer.pad_token_id is not None and tokenizer.pad_token_id not in self.ends else []
        self.banned = torch.tensor(banned, dtype=torch.int64)
        self.prompts: dict[str, tuple[Any, tuple[int, ...]]] = {}
        if check:
            self._check_attention()

    @property
    def dtype(self) -> torch.dtype:
        """The type that it computes in."""
        kind: torch.dtype = self.network.dtype
        return kind

    def _check_attention(self) -> None:
        """Refuse what our masks cannot run: a tree of two branches must give what two plain forwards give, and no window may slide."""
        config = self.network.config
        kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
        if kinds != {"full_attention"} or (getattr(config, "sliding_window", None) and not hasattr(config, "layer_types")):
            raise ModelError(
                f"this {config.model_type} model looks through a sliding window", where=self.name, expected="full attention in every layer"
            )
        pool = [i for i in range(min(48, self.head.weight.shape[0])) if i not in self.ends][:12]
        rows = [pool[:8], pool[:4] + pool[6:10]]
        with torch.no_grad():
            plain = [self.network(torch.tensor([r])).logits[0, 3:] for r in rows]
            packed = trees([tuple(rows[0][:4])] * 2, torch.tensor([r[4:] for r in rows]), torch.tensor([4, 4]))
            hidden = self._hidden_of(packed)
            ours = [self.head(h) for h in hidden]
        gap = max(float((a - b).abs().max()) for a, b in zip(plain, ours, strict=True))
        if not gap < (1e-3 if self.dtype == torch.float32 else 1e-6 if self.dtype == torch.float64 else 0.5):
            kind = self.network.config.model_type
            raise ModelError(
                f"this {kind} model cannot be computed in trees (difference {gap:.2g} to a plain forward)",
                where=self.name,
                expected="a decoder with full attention, such as llama, qwen2, qwen3, gpt2",
            )

    # -- text and ids
    def prompt_ids(self, context: Context) -> tuple[int, ...]:
        """The ids that a context's prompt becomes, special tokens exactly once."""
        kept = self.prompts.get(context.id)
        if kept is not None and kept[0] is context.prompt:
            return kept[1]
        if len(self.prompts) > 20000:
            self.prompts.clear()
        ids = tuple(self._render(context.prompt))
        if not ids:
            raise ModelError(
                "the prompt is empty", where=f"context {context.id}", fix="give every context at least one token to start from"
            )
        self.prompts[context.id] = (context.prompt, ids)
        return ids

    def _render(self, prompt: Any) -> list[int]:
        if not isinstance(prompt, Rendered) and getattr(self.tokenizer, "chat_template", None):
            messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
            text = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
            return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])
        if not isinstance(prompt, str):
            raise ModelError(f"{self.name} has no chat template", seen=type(prompt).__name__, expected="a text prompt")
        return list(self.tokenizer(str(prompt), add_special_tokens=not isinstance(prompt, Rendered))["input_ids"])

    def read(self, answer: str) -> list[int]:
        return [*self.tokenizer(answer, add_special_tokens=False)["input_ids"], self.ends[0]]

    def text(self, steps: Sequence[int]) -> str:
        said: str = self.tokenizer.decode(list(steps), skip_special_tokens=True)
        return said

    def pieces_of_text(self, steps: Sequence[int]) -> list[str]:
        """Each step as text, special tokens included, for colouring."""
        return [str(self.tokenizer.decode([s])) for s in steps]

    # -- the network
    def forward_hidden(self, ids: Tensor, position: Tensor, mask: Tensor, cache: Any = None) -> Tensor:
        """Last hidden states (R,L,H) under an additive mask (R,1,L,columns)."""
        how = {self.cache_word: cache, "use_cache": True} if cache is not None else {"use_cache": False}
        out: Tensor = self.body(input_ids=ids, attention_mask=mask, position_ids=position, **how).last_hidden_state
        return out

    def _hidden_of(self, packed: Any) -> Tensor:
        hidden = self.forward_hidden(packed.ids, packed.position, packed.attention(self.dtype))
        states = hidden.reshape(-1, hidden.shape[-1])[packed.place]
        return torch.where(packed.inside[..., None], states, 0.0)

    def states(self, batch: Rollouts) -> Tensor:
        return self._hidden_of(trees([self.prompt_ids(c) for c in batch.contexts], batch.steps, batch.length))

    def logits(self, hidden: Tensor) -> Tensor:
        return self._without_banned(self.head(hidden))

    def _without_banned(self, logits: Tensor) -> Tensor:
        return logits.index_fill(-1, self.banned, -torch.inf) if len(self.banned) else logits

    def values(self, hidden: Tensor) -> Tensor:
        value: Tensor = self.worth(hidden)[..., 0]
        return value

    def frozen_head(self) -> Callable[[Tensor], Tensor]:
        weight = self.head.weight.detach().clone()
        bias = None if self.head.bias is None else self.head.bias.detach().clone()
        return lambda hidden: self._without_banned(nn.functional.linear(hidden, weight, bias))

    def cost(self, batch: Rollouts) -> Tensor:
        return batch.length + torch.tensor([len(self.prompt_ids(c)) for c in batch.contexts])

    def decode(self, table: Rollouts) -> Decoder:
        steps, length = table.steps.tolist(), table.length.tolist()
        return Decoder(self, [(*self.prompt_ids(c), *s[:n]) for c, s, n in zip(table.contexts, steps, length, strict=True)])

    # -- files
    def save(self, folder: Path) -> None:
        """Write a Hugging Face folder that any library can load. Adapters are folded in, and lie beside it in peft's form under adapter/;
        a value head that learnt lies in value_head.safetensors."""
        folder.mkdir(parents=True, exist_ok=True)
        plain = merged(self.network)
        plain.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        if plain is not self.network:
            save_adapters(self.network, folder / "adapter", self.name)
        if bool((self.worth.weight != 0).any()):
            save_file({"weight": self.worth.weight.detach(), "bias": self.worth.bias.detach()}, folder / "value_head.safetensors")

    def load_value_head(self, folder: Path) -> None:
        """Take the value head that lies in a folder, if one does."""
        path = folder / "value_head.safetensors"
        if path.is_file():
            self.worth.load_state_dict(load_file(path))

    @classmethod
    def random(
        cls, config: Any, tokenizer: Any, *, seed: int = 0, learner: Learner | None = None, dtype: torch.dtype = torch.float32
    ) -> Self:
        """An untrained model of this config, its weights drawn from a private generator."""
        from transformers import AutoModelForCausalLM

        with torch.random.fork_rng():
            network = AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=dtype)
        private = generator(mix(seed, "weights"))
        with torch.no_grad():
            for name, p in network.named_parameters():
                scales = "norm" in name or "ln_" in name
                p.copy_(torch.randn(p.shape, generator=private) * 0.05 + (1.0 if scales and "weight" in name else 0.0))
        return cls(network, tokenizer, learner=learner)


def _ends(network: Any, tokenizer: Any) -> tuple[int, ...]:
    """Ids that end an answer: the tokenizer's first, then those of the generation config."""
    said = getattr(network.generation_config, "eos_token_id", None) if getattr(network, "generation_config", None) else None
    more = said if isinstance(said, list) else [said]
    found = dict.fromkeys(i for i in [tokenizer.eos_token_id, *more] if i is not None)
    if not found:
        raise ModelError("the tokenizer has no end token", fix='set "eos_token" in tokenizer_config.json')
    return tuple(found)
