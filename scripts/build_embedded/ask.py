"""Ask a model: many prompts at once, greedily or sampled at temperature 1."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

import torch
from scripts.build_embedded.examples import Mixture, draw
from scripts.build_embedded.folder import build_tokenizer
from scripts.build_embedded.rows import encode
from transformers import LlamaForCausalLM

from burnish.formats import FORMATS
from burnish.tasks.base import Problem, generator
from burnish.tasks.truth import right

TOKENIZER = build_tokenizer()
PAD, END, LONGEST = TOKENIZER.token_to_id("<pad>"), TOKENIZER.token_to_id("<end>"), 20


@torch.no_grad()
def ask(model: LlamaForCausalLM, prompts: Sequence[str], sampled: bool = False, key: Hashable = 0, batch: int = 256) -> list[str]:
    """What the model says to each prompt, without `<end>`."""
    said: list[str] = []
    options = {"do_sample": True, "top_k": 0, "top_p": 1.0} if sampled else {"do_sample": False}
    torch.manual_seed(generator(key).getrandbits(62))
    for start in range(0, len(prompts), batch):
        rows = [encode(prompt) for prompt in prompts[start : start + batch]]
        width = max(map(len, rows))
        tokens = torch.tensor([[PAD] * (width - len(row)) + row for row in rows])
        made = model.generate(input_ids=tokens, attention_mask=(tokens != PAD).long(), **options,
                              max_new_tokens=LONGEST, pad_token_id=PAD, eos_token_id=END)  # fmt: skip
        for row in made[:, width:].tolist():
            row = row[: row.index(END)] if END in row else row
            said.append(TOKENIZER.decode([token for token in row if token != PAD], skip_special_tokens=False))
    return said


def own_samples(model: LlamaForCausalLM, mixture: Mixture, key: tuple) -> dict[str, list[tuple[Problem, str]]]:
    """Wrong answers that the model gives when it samples, by task: the near misses that its critic will meet. Tasks with fewer than 20
    are left out: so few would be learnt by heart."""
    model.eval()
    rng, samples = generator(*key), defaultdict(list)
    problems = [draw(rng, mixture) for _ in range(2048)]
    answers = ask(model, [FORMATS["answer"].render(problem.question) for problem in problems], True, key)
    for problem, answer in zip(problems, answers, strict=False):
        if answer and len(answer) <= 16 and "<" not in answer[:1] and not right(answer, problem.meta):
            samples[problem.meta["task"]].append((problem, answer))
    model.train()
    return {task: found for task, found in samples.items() if len(found) >= 20}
