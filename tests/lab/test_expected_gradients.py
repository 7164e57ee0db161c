"""On the tree lab every method's expected gradient equals its paper's formula, by enumeration. The formulas are written here a second
time, from the papers, as plain loops over contexts and tuples of answers; nothing of the library's parts is used in them."""

import itertools
import math

import pytest
import torch

from burnish.methods.registry import method, names
from burnish.models.options import Learner
from burnish.models.tabular import Tabular
from burnish.tasks.lab import Strings, optimum, value

SYMBOLS, HORIZON, CONTEXTS, G = 2, 2, 2, 2


def reward(context, symbols):
    return [0.0, 1.0, 0.3, 0.7][(len(symbols) + 2 * symbols[-1] + context) % 4]


class Plain:
    """The same policy as loops: log-probs of steps from the raw table."""

    def __init__(self, policy, behaviour=None):
        self.policy, self.nodes = policy, policy.nodes
        self.strings = policy.strings()
        self.behaviour = behaviour if behaviour is not None else policy.table.detach().clone()

    def steps(self, context, string, table=None):
        table = self.policy.table if table is None else table
        node, out = 0, []
        for s in string:
            row = table[context * self.nodes + node]
            out.append(row[s] - torch.logsumexp(row, 0))
            node = node * SYMBOLS + s + 1
        return out

    def chance(self, context, string):
        return math.exp(sum(float(x) for x in self.steps(context, string, self.behaviour)))

    def tuples(self, n=G):
        """(context, answers, probability) of every way to draw n answers to a context."""
        for context in range(CONTEXTS):
            for answers in itertools.product(self.strings, repeat=n):
                yield context, answers, math.prod(self.chance(context, a) for a in answers)

    def old(self, context, string):
        return [float(x) for x in self.steps(context, string, self.behaviour)]


def mean_std(rewards):
    mean = sum(rewards) / len(rewards)
    return mean, math.sqrt(sum((r - mean) ** 2 for r in rewards) / len(rewards))


def normalized(rewards):
    mean, std = mean_std(rewards)
    return [0.0 if std == 0 else (r - mean) / (std + 1e-6) for r in rewards]


def clipped(new, old, advantage, low=0.2, high=0.2):
    ratio = torch.exp(new - old)
    return -torch.minimum(ratio * advantage, ratio.clamp(1 - low, 1 + high) * advantage)


def total(terms):
    return sum(terms) if terms else torch.zeros(())


def reinforce(plain):
    return total([-p * reward(c, y) * sum(plain.steps(c, y)) / CONTEXTS for c, (y,), p in plain.tuples(1)])


def rloo(plain, beta=0.03):
    out = []
    for c, answers, p in plain.tuples():
        scores = [reward(c, y) - beta * sum(a - b for a, b in zip(plain.old(c, y), plain.reference(c, y), strict=True)) for y in answers]
        for i, y in enumerate(answers):
            others = [s for j, s in enumerate(scores) if j != i]
            out.append(-p * (scores[i] - sum(others) / len(others)) * sum(plain.steps(c, y)) / (G * CONTEXTS))
    return total(out)


def remax(plain):
    out = []
    for c in range(CONTEXTS):
        greedy = []
        while len(greedy) < HORIZON and (not greedy or greedy[-1] != 0):
            node = 0
            for s in greedy:
                node = node * SYMBOLS + s + 1
            greedy.append(int(plain.behaviour[c * plain.nodes + node].argmax()))
        for y in plain.strings:
            out.append(-plain.chance(c, y) * (reward(c, y) - reward(c, greedy)) * sum(plain.steps(c, y)) / CONTEXTS)
    return total(out)


def group_relative(plain, credit, loss, reduce, keep=lambda rewards: True):
    """Sum over tuples of a loss per step, reduced by sequence, by token or by a constant, over the rows that stay."""
    value_, weight = [], 0.0
    for c, answers, p in plain.tuples():
        rewards = [reward(c, y) for y in answers]
        if not keep(rewards):
            continue
        for advantage, y in zip(credit(rewards), answers, strict=True):
            losses = loss(plain, c, y, advantage)
            scale = {"sequence": 1 / len(y), "token": 1.0, "constant": 1 / 16.0}[reduce]
            value_.append(p * scale * sum(losses))
            weight += p * (len(y) if reduce == "token" else 1.0)
    return total(value_) / weight


def by_token(low=0.2, high=0.2):
    return lambda plain, c, y, a: [clipped(n, o, a, low, high) for n, o in zip(plain.steps(c, y), plain.old(c, y), strict=True)]


def grpo(plain):
    def loss(plain, c, y, a):
        d = [n - r for n, r in zip(plain.steps(c, y), plain.reference(c, y), strict=True)]
        return [x + 0.04 * (torch.exp(-k) - 1 + k) for x, k in zip(by_token()(plain, c, y, a), d, strict=True)]

    return group_relative(plain, normalized, loss, "sequence")


def dr_grpo(plain):
    return group_relative(plain, lambda rs: [r - mean_std(rs)[0] for r in rs], by_token(), "constant")


def dapo(plain):
    return group_relative(plain, normalized, by_token(0.2, 0.28), "token", keep=lambda rs: len(set(rs)) > 1)


def gspo(plain):
    def loss(plain, c, y, a):
        new, old = sum(plain.steps(c, y)) / len(y), sum(plain.old(c, y)) / len(y)
        return [clipped(new, old, a, 3e-4, 4e-4)] * len(y)

    return group_relative(plain, normalized, loss, "sequence")


def cispo(plain):
    def loss(plain, c, y, a):
        pairs = zip(plain.steps(c, y), plain.old(c, y), strict=True)
        return [-min(max(math.exp(n.item() - o), 0.0), 3.0) * a * n for n, o in pairs]

    return group_relative(plain, normalized, loss, "token")


def ppo(plain):
    """GAE by hand with the critic's values, KL in the reward, whitened over all steps, clipped, token mean."""
    lam, weight, rows = 0.95, 0.05, []
    for c, answers, p in plain.tuples():
        for y in answers:
            values, node = [], 0
            for s in [*y, None]:
                values.append(float(plain.worth[c * plain.nodes + node]) if node < plain.nodes else 0.0)
                node = node * SYMBOLS + s + 1 if s is not None else node
            values[-1] = 0.0  # every string is over at its end
            kl = [a - b for a, b in zip(plain.old(c, y), plain.reference(c, y), strict=True)]
            rs = [(reward(c, y) if t == len(y) - 1 else 0.0) - weight * kl[t] for t in range(len(y))]
            last, out = 0.0, []
            for t in reversed(range(len(y))):
                last = rs[t] + values[t + 1] - values[t] + lam * last
                out.append(last)
            rows.append((c, y, p, out[::-1]))
    flat = [a for *_, advantages in rows for a in advantages]
    mean, std = mean_std(flat)
    losses, count = [], 0.0
    for c, y, p, advantages in rows:
        white = [(a - mean) / (std + 1e-8) for a in advantages]
        losses += [p * clipped(n, o, a) for n, o, a in zip(plain.steps(c, y), plain.old(c, y), white, strict=True)]
        count += p * len(y)
    return total(losses) / count


def raft(plain):
    losses, count = [], 0.0
    for c, answers, p in plain.tuples():
        rewards = [reward(c, y) for y in answers]
        best = answers[rewards.index(max(rewards))]
        losses += [-p * n for n in plain.steps(c, best)]
        count += p * len(best)
    return total(losses) / count


ANSWERS = ["1 1", "1 0"]


def sft(plain):
    said = [[int(s) for s in a.split()] for a in ANSWERS]
    steps = [x for c, y in enumerate(said) for x in plain.steps(c, y)]
    return -sum(steps) / len(steps)


FORMULAS = {f.__name__.replace("_", "-"): f for f in (reinforce, rloo, remax, grpo, dr_grpo, dapo, gspo, cispo, ppo, raft, sft)}
NO_GRADIENT = {"best-of-n": "no weights change"}
CHANGES = {"dapo": {"rounds": 1, "reward": "none", "group_size": G}, "sft": {}, "reinforce": {"group_size": 1}, "remax": {"group_size": 1}}


def test_every_registered_method_has_its_formula_here():
    assert FORMULAS.keys() | NO_GRADIENT.keys() == set(names())


def made(name, *, moved=False, seed=3):
    """The method on the exact task, its assigned table, and the plain policy; `moved`: the policy left its behaviour since."""
    policy = Tabular(CONTEXTS, SYMBOLS, HORIZON, end=0, seed=seed, learner=Learner(optimizer="sgd"))
    task = Strings(CONTEXTS, reward, horizon=HORIZON, exact=True, answers=ANSWERS)
    changes = CHANGES.get(name, {"group_size": G})
    training = method(name)(policy, task, task, prompts=CONTEXTS, **changes)
    private = torch.Generator().manual_seed(7)
    if "reference" in training.roles:  # a reference that differs
        with torch.no_grad():
            training.reference.table += 0.3 * torch.randn(training.reference.table.shape, generator=private).double()
    plain = Plain(policy)
    if "reference" in training.roles:
        other = training.reference.table.detach().clone()
        plain.reference = lambda c, y: [float(x) for x in plain.steps(c, y, other)]
    if "critic" in training.roles:
        plain.worth = training.critic.worth.detach().clone()
    batch = training.assign(training.produce())
    if moved:
        with torch.no_grad():
            policy.table += 0.15 * torch.randn(policy.table.shape, generator=private).double()
    return training, batch, plain


@pytest.mark.parametrize("moved", [False, True], ids=["on-policy", "off-policy"])
@pytest.mark.parametrize("name", FORMULAS)
def test_the_expected_gradient_is_that_of_the_formula(name, moved):
    training, batch, plain = made(name, moved=moved)
    found = training.gradient(batch)["table"]
    expected = torch.autograd.grad(FORMULAS[name](plain), plain.policy.table)[0]
    assert expected.abs().max() > 1e-3
    assert torch.allclose(found, expected, atol=1e-6, rtol=1e-6), float((found - expected).abs().max())


def j_gradient(plain, task):
    return torch.autograd.grad(value(plain.policy, task), plain.policy.table)[0]


def test_reinforce_is_the_gradient_of_the_value():
    training, batch, plain = made("reinforce")
    assert torch.allclose(training.gradient(batch)["table"], -j_gradient(plain, training.task), atol=1e-12)


@pytest.mark.parametrize("group_size", [2, 3])
def test_rloo_is_unbiased_for_every_group_size_and_dr_grpo_short_by_its_share(group_size):
    policy = Tabular(CONTEXTS, SYMBOLS, HORIZON, end=0, seed=3)
    task = Strings(CONTEXTS, reward, horizon=HORIZON, exact=True)
    true = -j_gradient(Plain(policy), task)
    rloo_ = method("rloo")(policy, task, task, prompts=CONTEXTS, group_size=group_size, reward="none")
    assert torch.allclose(rloo_.gradient(rloo_.assign(rloo_.produce()))["table"], true, atol=1e-12)
    dr = method("dr-grpo")(policy, task, task, prompts=CONTEXTS, group_size=group_size)
    share = (group_size - 1) / group_size / 16
    assert torch.allclose(dr.gradient(dr.assign(dr.produce()))["table"], share * true, atol=1e-12)


def test_remax_is_unbiased_and_a_constant_reward_moves_nothing_in_expectation():
    training, batch, plain = made("remax")
    assert torch.allclose(training.gradient(batch)["table"], -j_gradient(plain, training.task), atol=1e-12)
    shifted = batch.attach(advantage=torch.where(batch.mask, batch.advantage + 5.0, 0.0))
    assert torch.allclose(training.gradient(shifted)["table"], training.gradient(batch)["table"], atol=1e-12)


def test_ppo_with_a_perfect_or_any_critic_is_unbiased_at_lambda_one():
    policy = Tabular(CONTEXTS, SYMBOLS, HORIZON, end=0, seed=3)
    task = Strings(CONTEXTS, reward, horizon=HORIZON, exact=True)
    changes = {"reward": "none", "shape": "none", "reduction": "sequence_sum", "credit": "gae:lam=1.0", "group_size": 1}
    training = method("ppo")(policy, task, task, prompts=CONTEXTS, **changes)
    assert training.critic.worth.detach().abs().max() > 0.5
    found = training.gradient(training.assign(training.produce()))["table"]
    assert torch.allclose(found, -j_gradient(Plain(policy), task), atol=1e-12)


def test_binary_rewards_make_the_group_methods_differ_by_the_spread_alone():
    policy = Tabular(1, SYMBOLS, HORIZON, end=0, seed=5)
    task = Strings(1, lambda c, s: float(s[-1] == 1), horizon=HORIZON, exact=True)
    credits = {}
    for name in ("grpo", "dr-grpo", "rloo"):
        changes = {"penalty": "none"} if name == "grpo" else {"reward": "none"} if name == "rloo" else {}
        training = method(name)(policy, task, task, prompts=1, group_size=3, **changes)
        batch = training.assign(training.produce())
        credits[name] = batch.advantage[:, 0]
    _, group = batch.group.unique(return_inverse=True)
    share = torch.zeros(int(group.max()) + 1).double().index_add(0, group, batch.reward)[group] / 3
    sigma = (share * (1 - share)).sqrt()
    assert torch.allclose(credits["rloo"], 1.5 * credits["dr-grpo"])
    assert torch.allclose(credits["grpo"] * (sigma + 1e-6), credits["dr-grpo"])
    right = (batch.reward == 1) & (sigma > 0)
    assert torch.allclose(credits["grpo"][right], ((1 - share) / share).sqrt()[right], atol=1e-4)


def test_the_kl_optimal_policy_has_no_better_neighbour():
    policy = Tabular(1, SYMBOLS, HORIZON, end=0, seed=5)
    task = Strings(1, reward, horizon=HORIZON)
    best = optimum(policy, task, 0.5)[0]
    every = policy.enumerate(task.pool)
    scores = task.judge(every).columns["reward"]

    def objective(p):
        return float((p * scores).sum() - 0.5 * (p * (p.log() - every.weight.log())).sum())

    assert float(best.sum()) == pytest.approx(1.0)
    private = torch.Generator().manual_seed(0)
    for _ in range(50):
        other = (best.log() + 0.2 * torch.randn(best.shape, generator=private).double()).softmax(0)
        assert objective(other) < objective(best)


def test_best_of_n_draws_by_its_law():
    """P(best = y) = F(y)^n - F(y-)^n when no two answers tie."""
    policy = Tabular(1, SYMBOLS, HORIZON, end=0, seed=5)
    distinct = {(0,): 0.2, (1, 0): 0.9, (1, 1): 0.5}
    task = Strings(1, lambda c, s: distinct[tuple(s)], horizon=HORIZON)
    deployed = method("best-of-n")(policy, task, task, n=3).deploy()
    drawn = deployed.sample(task.pool * 1, 6000, key=torch.tensor(4), max_steps=HORIZON)
    every = policy.enumerate(task.pool)
    for i, string in enumerate(policy.strings()):
        below = sum(float(p) for p, s in zip(every.weight, policy.strings(), strict=True) if distinct[s] < distinct[string])
        law = (below + float(every.weight[i])) ** 3 - below**3
        share = sum(tuple(s[:n]) == string for s, n in zip(drawn.steps.tolist(), drawn.length.tolist(), strict=True)) / len(drawn)
        assert share == pytest.approx(law, abs=4 * math.sqrt(law * (1 - law) / len(drawn)))
