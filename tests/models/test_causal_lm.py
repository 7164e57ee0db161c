"""The causal language model: what is recorded while sampling is what a plain forward says, whatever was shared, cached or packed."""

from __future__ import annotations

import math

import pytest
import torch
from transformers import AutoTokenizer, GPT2Config, LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config

from burnish.errors import ModelError
from burnish.models.causal_lm import CausalLM
from burnish.models.load import EMBEDDED, load
from burnish.models.options import Learner
from burnish.parts import At, TopK, divergences, over
from burnish.types import Context, Feedback, Origin, Rendered, StopReason, Term, mix

SIZE = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
KINDS = {
    "llama": lambda v: LlamaConfig(vocab_size=v, attention_dropout=0.3, tie_word_embeddings=True, **SIZE),
    "gpt2": lambda v: GPT2Config(vocab_size=v, n_embd=32, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=1),
    "qwen2": lambda v: Qwen2Config(vocab_size=v, **SIZE),
    "qwen3": lambda v: Qwen3Config(vocab_size=v, head_dim=8, **SIZE),
}
CONTEXTS = [Context("a", "add4+7"), Context("b", "sort3142"), Context("c", "add49+9"), Context("d", "add4+7")]


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(EMBEDDED / "tiny")


@pytest.fixture(scope="module")
def made(tokenizer):
    def make(kind="llama", seed=1, dtype=torch.float32, **learner):
        return CausalLM.random(KINDS[kind](len(tokenizer)), tokenizer, seed=seed, dtype=dtype, learner=Learner(**learner))

    return make


def plain_logp(model, row):
    """Log-probs of a row's steps from one forward of the whole text, nothing cached, packed or shared."""
    prompt, n = list(model.prompt_ids(row.contexts[0])), int(row.length[0])
    ids = torch.tensor([prompt + row.steps[0, :n].tolist()])
    logits = model.network(ids).logits[0]
    logits[:, model.banned] = -torch.inf
    logp = (logits / float(row.temperature[0])).log_softmax(-1)
    return torch.stack([logp[len(prompt) - 1 + t, row.steps[0, t]] for t in range(n)])


def rows(batch):
    return [batch.select(torch.tensor([i])) for i in range(len(batch))]


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_recorded_log_probs_equal_a_plain_full_forward(made, kind):
    model = made(kind)
    batch = model.sample(CONTEXTS, 4, key=mix(0), max_steps=24, temperature=0.7)
    assert len(set(batch.length.tolist())) > 1  # finished rows left
    for row in rows(batch):
        gap = (plain_logp(model, row) - row.sampled_logp[0, : int(row.length[0])]).abs()
        assert gap.max() < 1e-5
    packed = torch.where(batch.mask, model.score(batch).logp - batch.sampled_logp, 0.0)
    assert packed.abs().max() < 1e-5


def test_a_sample_never_depends_on_its_batch_mates(made):
    model = made()
    together = model.sample(CONTEXTS, 4, key=mix(7), max_steps=16)
    for i, context in enumerate(CONTEXTS):
        alone = model.sample([context], 4, key=mix(7), max_steps=16)
        T = alone.steps.shape[1]
        assert torch.equal(together.steps[4 * i : 4 * i + 4, :T], alone.steps)
        assert torch.equal(together.stop[4 * i : 4 * i + 4], alone.stop)
    model.rows_at_once = 3
    assert torch.equal(model.sample(CONTEXTS, 4, key=mix(7), max_steps=16).steps, together.steps)


@torch.no_grad()
def test_a_prefix_is_continued_and_only_what_is_new_is_trained(made):
    model = made()
    first = model.sample(CONTEXTS, 2, key=mix(1), max_steps=10)
    length = first.length // 2
    more = model.sample(first.prefix(length), 3, key=mix(2), max_steps=8)
    assert len(more) == 24
    old = torch.arange(more.steps.shape[1]) < length.repeat_interleave(3)[:, None]
    assert not (more.mask & old).any()
    kept = first.prefix(length).steps.repeat_interleave(3, 0)
    T = min(kept.shape[1], more.steps.shape[1])
    assert torch.equal(torch.where(old, more.steps, 0)[:, :T], kept[:, :T])
    for row in rows(more):
        said = torch.where(row.origin[0] == Origin.POLICY, row.sampled_logp[0], 0.0)[: int(row.length[0])]
        assert (plain_logp(model, row) - said).abs().max() < 1e-5


@torch.no_grad()
def test_truncated_supports_record_their_mass_and_are_never_left(made):
    model = made()
    for how in ({"top_k": 3}, {"top_p": 0.3}, {"min_p": 0.5}, {"temperature": 0.0}):
        batch = model.sample(CONTEXTS, 6, key=mix(3), max_steps=6, **how)
        top = model.score(batch, (TopK(3),))
        inside = (top.top_ids == batch.steps[..., None]).any(-1)
        assert inside[batch.mask].all() or "top_p" in how or "min_p" in how
        assert ((batch.kept > 0) & (batch.kept <= 1 + 1e-6))[batch.mask].all()
        assert (batch.kept < 0.999)[batch.mask].any()
        assert torch.where(batch.mask, model.score(batch).logp - batch.sampled_logp, 0.0).abs().max() < 1e-5  # of the whole distribution
    greedy = model.sample(CONTEXTS, 2, key=mix(3), max_steps=6, temperature=0.0)
    assert torch.equal(greedy.steps[0], greedy.steps[1])
    assert torch.allclose(greedy.kept[greedy.mask].log(), greedy.sampled_logp[greedy.mask], atol=1e-5)


def test_padding_and_ids_that_nobody_can_write_are_never_drawn(made, tokenizer):
    config = KINDS["llama"](len(tokenizer) + 21)
    model = CausalLM.random(config, tokenizer, seed=2)
    batch = model.sample(CONTEXTS, 64, key=mix(0), max_steps=12)
    assert int(batch.steps.max()) < len(tokenizer)
    assert not (batch.steps[batch.mask] == tokenizer.pad_token_id).any()


def test_the_end_is_drawn_and_learnt_when_it_is_the_padding_too(tokenizer, made):
    import copy

    twin = copy.deepcopy(tokenizer)
    twin.pad_token = twin.eos_token
    model = CausalLM.random(KINDS["llama"](len(twin)), twin, seed=1, learner=Learner(lr=1e-2))
    batch = model.encode(CONTEXTS, ["11", "1234", "58", "11"])
    assert batch.mask.sum() == 3 + 5 + 3 + 3
    for _ in range(50):
        model.update(batch, lambda s, b: {"nll": -s.logp})
    found = model.sample(CONTEXTS, key=mix(0), max_steps=12, temperature=0.0)
    assert found.text == ["11", "1234", "58", "11"]
    assert (found.stop == StopReason.TERMINAL).all()


def test_special_tokens_stand_exactly_once(made):
    model = made()
    ids = model.prompt_ids(Context("x", "add4+7"))
    assert model.tokenizer.decode(ids) == "<q>add4+7<a>"
    assert model.prompt_ids(Context("y", Rendered("<q>add4+7<a>"))) == ids
    assert model.read("11")[-1] == model.ends[0]


def test_uniform_logits_cost_log_v_per_token(made, tokenizer):
    model = made()
    model.banned = torch.zeros(0, dtype=torch.int64)
    with torch.no_grad():
        model.head.weight.zero_()
    batch = model.encode([CONTEXTS[0]], ["123"])
    found = model.gradient(batch, lambda s, b: {"nll": -s.logp}, reduction="sequence_sum")
    assert found.report["nll"] == pytest.approx(4 * math.log(len(tokenizer)), rel=1e-6)


@torch.no_grad()
def test_distances_of_whole_distributions_are_exact_and_zero_at_home(made):
    model, other = made(), made(seed=5)
    batch = model.sample(CONTEXTS, 2, key=mix(3), max_steps=6)
    table = batch.attach(
        reference_distribution=other.score(batch, ("distribution",)).distribution,
        old_distribution=model.score(batch, ("distribution",)).distribution,
    )
    for name in ("reverse_kl", "forward_kl", "jsd", "hellinger", "total_variation"):
        part = getattr(divergences, name)
        found = model.score(table, (over(part, to="reference"), over(part, to="old", name="home")))
        assert found.home.abs().max() < 1e-6
        assert (found.divergence[batch.mask] > 1e-4).any()
    p, q = (m.logits(m.states(batch)[:, :-1]).log_softmax(-1) for m in (model, other))
    p, q = p.clamp(min=-1e4), q.clamp(min=-1e4)
    kl = (p.exp() * (p - q)).sum(-1)
    assert torch.allclose(
        model.score(table, (over(divergences.reverse_kl, to="reference"),)).divergence[batch.mask], kl[batch.mask], atol=1e-5
    )


@torch.no_grad()
def test_what_is_wanted_agrees_with_itself(made):
    model = made()
    batch = model.sample(CONTEXTS, 2, key=mix(3), max_steps=6)
    found = model.score(batch, ("logp", "nll", "entropy", TopK(5)))
    again = model.score(batch.attach(top_ids=found.top_ids), (At("top_ids"),)).at_top_ids
    assert torch.equal(found.logp, -found.nll)
    assert torch.equal(again[batch.mask], found.top_logp[batch.mask])
    assert torch.allclose(found.entropy[batch.mask], batch.sampled_entropy[batch.mask], atol=1e-5)
    with pytest.raises(ModelError, match="cannot give"):
        model.score(batch, ("velocity",))


def coupled(scores, batch):
    """A loss that no row can be cut out of: cross-entropy of each group's softmax."""
    total = torch.where(batch.mask, scores.logp, 0.0).sum(1)
    return {
        "set": Term(torch.stack([-total[batch.group == g].log_softmax(0)[0] for g in batch.group.unique()]), on="group"),
        "rows": Term(scores.entropy, reduce="sequence_sum", weight=-0.1),
    }


@pytest.mark.parametrize("unit", ["row", "group", "batch"])
def test_gradients_do_not_depend_on_micro_batches_in_one_pass_or_two(made, unit):
    found = []
    for size in (1, 3, 0):
        model = made(dtype=torch.float64, micro_batch=size)
        batch = model.sample(CONTEXTS, 4, key=mix(2), max_steps=6)
        loss = coupled if unit != "row" else lambda s, b: {"a": -s.logp, "b": Term(s.entropy, weight=0.3)}
        found.append(model.gradient(batch, loss, ("logp", "entropy"), unit=unit))
    for other in found[:2]:
        assert all(torch.allclose(found[2][n], g, atol=1e-6) for n, g in other.items())
        assert other.report == pytest.approx(found[2].report)


def test_pairs_are_never_torn(made):
    found = []
    for size in (1, 3, 0):
        model = made(dtype=torch.float64, micro_batch=size)
        pairs = torch.tensor([[0, 1], [2, 3], [3, 4]])
        feedback = Feedback(pairs=pairs, probability=torch.ones(3, dtype=torch.float64))
        batch = model.encode([CONTEXTS[i // 2] for i in range(5)], ["1", "22", "3", "44", "5"], feedback)

        def loss(scores, table):
            row = torch.where(table.mask, scores.logp, 0.0).sum(1)
            return {"pairs": Term(-torch.nn.functional.logsigmoid(row[table.pairs[:, 0]] - row[table.pairs[:, 1]]), on="pairs")}

        found.append(model.gradient(batch, loss, unit="pair"))
    assert all(torch.allclose(found[2][n], g, atol=1e-6) for other in found[:2] for n, g in other.items())
    assert found[2].norm() > 1e-3


def test_each_term_is_divided_once_by_its_own_count(made):
    """Two rows, one token of loss 2.0 and nine of 0.5: 0.65 per token, whatever the micro-batch."""
    for size in (1, 0):
        model = made(micro_batch=size)
        batch = model.encode(CONTEXTS[:2], [model.read("")[:1], [9] * 9]).attach(first=torch.tensor([True, False]))

        def loss(scores, table):
            mine = torch.where(table.length[:, None] == 1, 2.0, 0.5)
            return {"token": mine + 0 * scores.logp, "rows": Term(2 + scores.logp.sum(1) * 0, on="first")}

        assert model.gradient(batch, loss).report == pytest.approx({"token": 0.65, "rows": 2.0})


def test_a_step_ahead_is_undone_to_the_bit(made):
    model = made()
    batch = model.sample(CONTEXTS, 2, key=mix(3), max_steps=6)
    model.update(batch, lambda s, b: {"a": -s.logp})
    before = model.state()
    gradient = model.gradient(batch, lambda s, b: {"a": -s.logp})
    with model.shifted(gradient):
        assert model.version < 0
        now = model.state()["parameters"]
        assert not all(torch.equal(now[n], x) for n, x in before["parameters"].items())
    after = model.state()
    assert after["version"] == before["version"]
    assert all(torch.equal(after["parameters"][n], x) for n, x in before["parameters"].items())
    assert all(torch.equal(after["optimizer"][n], x) for n, x in before["optimizer"].items())


def test_copies_stand_alone_and_follow(made):
    model = made()
    frozen, twin = model.snapshot(), model.fork()
    batch = model.sample(CONTEXTS, 2, key=mix(3), max_steps=6)
    before = frozen.score(batch).logp
    model.update(batch, lambda s, b: {"a": -s.logp})
    assert torch.equal(frozen.score(batch).logp, before)
    assert torch.equal(twin.score(batch).logp, before)
    frozen.follow(model, 0.5)
    middle, ends = dict(frozen.named_parameters()), zip(model.named_parameters(), twin.parameters(), strict=True)
    assert all(torch.allclose(middle[n], (p + q) / 2, atol=1e-7) for (n, p), q in ends)
    frozen.follow(model)
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), frozen.parameters(), strict=True))


def test_hinted_samples_do_not_pass_for_on_policy(made):
    model = made()
    hinted = [Context(f"h{i}", Rendered(f"<q>{c.prompt}<hint>1<a>")) for i, c in enumerate(CONTEXTS)]
    batch = model.sample(hinted, 2, key=mix(3), max_steps=6)
    bare = batch.under([CONTEXTS[i // 2] for i in range(8)])
    assert torch.equal(bare.sampled_logp, batch.sampled_logp)
    assert (model.score(bare).logp - bare.sampled_logp)[bare.mask].abs().max() > 1e-3
    assert (model.score(batch).logp - batch.sampled_logp)[batch.mask].abs().max() < 1e-5


def test_values_start_at_zero_and_know_no_temperature(made):
    model = made()
    cold, hot = (model.sample(CONTEXTS, 1, key=mix(3), max_steps=6, temperature=t) for t in (0.5, 2.0))
    assert (model.score(cold, ("value",)).value == 0).all()
    with torch.no_grad():
        model.worth.weight += 0.1
    same = hot.select(torch.arange(len(hot)))
    same.columns["temperature"] = torch.full((len(hot),), 0.5, dtype=torch.float64)
    assert torch.equal(model.score(hot, ("value",)).value, model.score(same, ("value",)).value)
    value = model.score(hot, ("value",)).value
    beyond = torch.arange(value.shape[1]) > hot.length[:, None]
    assert (value[beyond] == 0).all()


def test_a_model_that_slides_a_window_is_refused(tokenizer):
    with pytest.raises(ModelError, match="sliding window"):
        CausalLM.random(MistralConfig(vocab_size=len(tokenizer), sliding_window=16, **SIZE), tokenizer)


def test_adapters_leave_the_base_untouched_and_their_files_are_read_back(tmp_path):
    model = load("tiny", lora=4, learner=Learner(lr=1e-2))
    base = {n: p.clone() for n, p in model.named_parameters() if not p.requires_grad}
    batch = model.sample(CONTEXTS, 2, key=mix(0), max_steps=6)
    before = model.score(batch).logp
    assert torch.equal(before, load("tiny").score(batch).logp)
    for _ in range(3):
        model.update(batch, lambda s, b: {"a": -s.logp})
    assert all(torch.equal(base[n], p) for n, p in model.named_parameters() if n in base)
    model.save(tmp_path)
    now = model.score(batch).logp
    assert (now - before).abs().max() > 1e-2
    assert (load(str(tmp_path)).score(batch).logp - now).abs().max() < 1e-5
    assert (load(str(tmp_path / "adapter")).score(batch).logp - now).abs().max() < 1e-6


def test_a_gradient_that_is_not_finite_moves_nothing(made):
    model = made()
    batch = model.sample(CONTEXTS, 1, key=mix(0), max_steps=4)
    gradient = model.gradient(batch, lambda s, b: {"a": -s.logp})
    before = [p.clone() for p in model.parameters()]
    with pytest.raises(ModelError, match="not finite"):
        model.apply_gradient(gradient * math.nan)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
