"""GRPO in one file, without burnish: draw answers, judge them, compare them within their group, make the better ones more likely.

    python examples/from_scratch.py

It needs torch and transformers and nothing else. Every step that burnish takes is here as a plain loop, and the numbers are those of

    burnish train grpo --task sort --penalty none --epochs 2 --prompts 4 --group-size 8 --lr 1e-4 --steps 3

Letters in names: G answers to one prompt, L tokens of the longest answer, V symbols."""

import hashlib
import importlib.util
import random
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

SEED = 0
STEPS = 3
PROMPTS = 4  # problems per step
GROUP_SIZE = 8  # answers per problem
EPOCHS = 2  # updates on each batch
LONGEST_ANSWER = 16  # tokens
LR = 1e-4
MAX_GRAD_NORM = 1.0
CLIP = 0.2


# -- chance: every draw is a pure function of its key (splitmix64), so the order of the loops does not matter
MASK = 2**64 - 1


def digest(text):
    """A stable 63-bit number for a text."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def scramble(x):
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & MASK
    return x ^ x >> 31


def mix(*parts):
    """One key from many."""
    key = 0
    for part in parts:
        number = digest(part) if isinstance(part, str) else part
        key = scramble(((key + 0x9E3779B97F4A7C15) & MASK) ^ (number & MASK))
    return key


def uniform(key, index):
    """A number in [0, 1)."""
    return (mix(key, index) >> 11) / 2**53


# -- the task: put digits in ascending order. One question in eight is kept for evaluation and never trained on
def problem(number):
    """(name, question, right answer) of training problem `number`."""
    for attempt in range(1000):
        text = "\x1f".join(["sort", "1", "train", str(SEED), str(number), str(attempt)])
        rng = random.Random(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "big"))
        digits = "".join(rng.choice("0123456789") for _ in range(rng.randint(4, 7)))
        held_out = hashlib.blake2b(f"sort{digits}".encode(), digest_size=8).digest()[0] % 8 == 0
        if not held_out:
            return f"sort.1/train/{SEED}/{number}", f"sort{digits}", "".join(sorted(digits))
    raise RuntimeError("there are no training problems")


def reward(answer, reference):
    """1 for the right answer, else 0."""
    return float(answer.strip() == reference)


# -- the policy: a small language model; a step is a token
def load(dtype=torch.float32):
    """The model that ships with burnish, and its tokenizer. Only files are read here; burnish is not imported."""
    folder = Path(importlib.util.find_spec("burnish").submodule_search_locations[0]) / "models" / "embedded" / "tiny"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="eager")
    return model.eval(), tokenizer  # eval: no dropout


def next_log_probs(model, tokenizer, ids):
    """(G, len, V) log-probabilities of the next token after each token of ids (G, len). Padding is never an answer."""
    logits_GLV = model(ids).logits
    logits_GLV[..., tokenizer.pad_token_id] = -torch.inf
    return logits_GLV.log_softmax(-1)


@torch.no_grad()
def draw(model, tokenizer, prompt, keys):
    """One answer per key: tokens (G, L), which of them were drawn (G, L), and the log-probability of each when it was drawn (G, L)."""
    G = len(keys)
    ids = torch.tensor([prompt] * G)
    finished = torch.zeros(G, dtype=torch.bool)
    drawn, logp = [], []
    for t in range(LONGEST_ANSWER):
        log_p_GV = next_log_probs(model, tokenizer, ids)[:, -1]
        cumulative_GV = log_p_GV.double().exp().cumsum(1)
        chance_G = torch.tensor([uniform(key, t) for key in keys], dtype=torch.float64) * cumulative_GV[:, -1]
        token_G = torch.searchsorted(cumulative_GV, chance_G[:, None], right=True)[:, 0]
        drawn.append(~finished)
        logp.append(log_p_GV.gather(1, token_G[:, None])[:, 0])
        ids = torch.cat([ids, token_G[:, None]], 1)
        finished = finished | (token_G == tokenizer.eos_token_id)
        if finished.all():
            break
    return ids[:, len(prompt) :], torch.stack(drawn, 1), torch.stack(logp, 1)


# -- feedback becomes credit: how much better than the other answers to the same prompt?
def group_normalized(rewards_G):
    """(R - mean) / (std + 1e-6); 0 where all answers are equally good, because then they teach nothing."""
    if rewards_G.min() == rewards_G.max():
        return torch.zeros_like(rewards_G)
    return (rewards_G - rewards_G.mean()) / (rewards_G.std(correction=0) + 1e-6)


# -- credit becomes a loss: the clipped ratio, by the mean of each answer, so that a long answer counts as much as a short one
def clipped_loss(logp_GL, sampled_logp_GL, advantage_G, mask_GL):
    """(G,) -min(r A, clip(r) A), r = new probability / probability at the draw, averaged over the tokens of each answer."""
    ratio_GL = torch.where(mask_GL, logp_GL - sampled_logp_GL, 0.0).exp()
    unclipped = ratio_GL * advantage_G[:, None]
    clipped = ratio_GL.clamp(1 - CLIP, 1 + CLIP) * advantage_G[:, None]
    loss_GL = torch.where(mask_GL, -torch.minimum(unclipped, clipped), 0.0)
    return loss_GL.sum(1) / mask_GL.sum(1)


def collect(model, tokenizer, step, reward):
    """Draw, judge and assign credit: one group of answers for each of this step's problems."""
    step_key = mix(mix(SEED, "method"), step, "rollout")
    groups = []
    for number in range(step * PROMPTS, (step + 1) * PROMPTS):
        name, question, reference = problem(number)
        prompt = tokenizer(f"<q>{question}<a>", add_special_tokens=False)["input_ids"]
        keys = [mix(step_key, digest(name), 0, copy) for copy in range(GROUP_SIZE)]
        tokens, mask, sampled_logp = draw(model, tokenizer, prompt, keys)
        answers = [tokenizer.decode(t[m], skip_special_tokens=True) for t, m in zip(tokens, mask, strict=True)]
        rewards = torch.tensor([reward(answer, reference) for answer in answers], dtype=torch.float64)
        groups.append(
            {
                "prompt": prompt,
                "tokens": tokens,
                "mask": mask,
                "sampled_logp": sampled_logp,
                "answers": answers,
                "rewards": rewards,
                "advantage": group_normalized(rewards),
            }
        )
    return groups


def improve(model, tokenizer, optimizer, groups):
    """One optimizer step on all groups. Returns the loss and the length of the gradient."""
    rows = sum(len(group["tokens"]) for group in groups)
    total = 0.0
    optimizer.zero_grad()
    for group in groups:
        prompt = torch.tensor([group["prompt"]] * len(group["tokens"]))
        ids = torch.cat([prompt, group["tokens"]], 1)
        log_p_GLV = next_log_probs(model, tokenizer, ids)[:, prompt.shape[1] - 1 : -1]  # the token at t is predicted before t
        logp_GL = log_p_GLV.gather(2, group["tokens"][..., None])[..., 0]
        loss_G = clipped_loss(logp_GL, group["sampled_logp"], group["advantage"], group["mask"])
        loss = loss_G.sum() / rows  # one count for the whole step, so it does not matter how it is cut
        loss.backward()
        total += loss.item()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_GRAD_NORM).item()
    optimizer.step()
    return total, norm


def train(model, tokenizer, steps=STEPS, reward=reward):
    """The loop. Yields what happened in each step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=0.0)
    for step in range(steps):
        groups = collect(model, tokenizer, step, reward)
        updates = [improve(model, tokenizer, optimizer, groups) for _ in range(EPOCHS)]
        yield {"groups": groups, "losses": [loss for loss, _ in updates], "gradient_norms": [norm for _, norm in updates]}


if __name__ == "__main__":
    model, tokenizer = load()
    for step, happened in enumerate(train(model, tokenizer), 1):
        rewards = torch.cat([group["rewards"] for group in happened["groups"]])
        losses = ", ".join(f"{loss:+.6f}" for loss in happened["losses"])
        print(f"step {step}: mean reward {rewards.mean():.3f}, losses {losses}, e.g. {happened['groups'][0]['answers'][0]!r}")
