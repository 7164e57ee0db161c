"""Training examples: for one question and one draft, what a perfect model says in every format."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from scripts.build_embedded.drafts import FILLER, another_right, draft, wrong

from burnish.formats import FORMATS
from burnish.tasks import truth
from burnish.tasks.base import Problem, is_held_out
from burnish.tasks.registry import PARTS

Example = tuple[str, str, str]  # format, prompt, target
SHARES = {  # how often a tree has a branch of this format
    "redo": 0.35, "critique": 0.7, "fix": 0.55, "first-error": 0.3, "choose": 0.5, "verdict": 0.6, "score": 0.5, "item": 0.3, "items": 0.4,
    "hint": 0.15, "hinted": 0.25, "goal": 0.2, "direction": 0.25, "critiqued": 0.2, "tools": 0.4, "result": 0.5, "turn": 0.35,
    "user": 0.25, "tell": 0.1, "reflect": 0.25,
}  # fmt: skip
FUZZED = {"answer": 0.45, "redo": 0.5, "fix": 0.75, "hinted": 0.7, "turn": 0.7}  # share of right targets in the fuzz
FILLER_SHARE = 0.4  # of the targets that are not right
GENTLE = {"expr": 0.6, "mul": 0.8, "stack": 0.6, "count": 0.0}  # less fuzz where the clean model is not sure anyway
TASK_WEIGHTS = {name: {"add": 1.3, "expr": 1.6, "sub": 1.3, "mul": 1.3, "stack": 0.9, "compare": 0.8}.get(name, 1.0) for name in PARTS}
HARD = {"add": 1.8, "sub": 2.0, "mul": 1.6, "expr": 2.5, "next": 1.5, "count": 1.8, "rules": 1.3}
HARD_WEIGHTS = {name: HARD.get(name, 0.75) for name in PARTS}  # from the second stage on: what the first left weak


@dataclass
class Mixture:
    """What the examples are drawn from; changed by the phases of the build."""

    trees: float = 0.5  # share of units with all formats; the others only answer
    levels: tuple[float, float, float] = (0.75, 0.25, 0.0)
    tasks: dict[str, float] = field(default_factory=lambda: TASK_WEIGHTS)
    fuzz: float = 0.0  # strength of the fuzz, 0 to 1
    more_drafts: int = 0  # further drafts of a tree on which only the critics are trained
    own: float = 0.3  # share of wrong drafts that are the model's own samples, where there are any
    samples: dict[str, list[tuple[Problem, str]]] = field(default_factory=dict)


def draw(rng: random.Random, mixture: Mixture) -> Problem:
    """A problem that is not held out."""
    while True:
        task = PARTS[rng.choices(list(mixture.tasks), list(mixture.tasks.values()))[0]]
        problem = task.problem(rng, rng.choices((1, 2, 3), mixture.levels)[0])
        if not is_held_out(problem.question):
            return problem


def unit(rng: random.Random, mixture: Mixture) -> list[Example]:
    """The examples of one question: its answer alone, or a tree."""
    problem, own = draw(rng, mixture), None
    if rng.random() >= mixture.trees:
        return _fuzz(rng, mixture, problem, [("answer", FORMATS["answer"].render(problem.question), another_right(rng, problem.meta))])
    if mixture.samples and rng.random() < mixture.own:
        problem, own = rng.choice(mixture.samples[rng.choice(sorted(mixture.samples))])
        own = None if rng.random() < 0.4 else own
    examples = list(tree(rng, problem, own))
    for _ in range(mixture.more_drafts):
        examples += criticised(rng, problem)
    return _fuzz(rng, mixture, problem, examples)


def tree(rng: random.Random, problem: Problem, own: str | None = None) -> Iterator[Example]:
    """The branches of one question and one draft, in random order, each with the probability in SHARES."""
    question, meta = problem.question, problem.meta
    given = own if own is not None else draft(rng, question, meta)
    answer = given if truth.right(given, meta) else another_right(rng, meta)
    if rng.random() < 0.6:
        yield "answer", FORMATS["answer"].render(question), answer
    names = [name for name, share in SHARES.items() if rng.random() < share]
    rng.shuffle(names)
    for name in names:
        made = parts_and_target(rng, name, problem, given, answer)
        if made:
            yield name, FORMATS[name].render(made[2] if len(made) > 2 else question, made[0]), made[1]


def criticised(rng: random.Random, problem: Problem) -> Iterator[Example]:
    """One more draft, with the branches of the critics."""
    given = draft(rng, problem.question, problem.meta)
    for name in ("verdict", "critique", "score", "items"):
        if rng.random() < 0.8:
            parts, target = parts_and_target(rng, name, problem, given, given)[:2]
            yield name, FORMATS[name].render(problem.question, parts), target


def parts_and_target(rng: random.Random, name: str, problem: Problem, given: str, answer: str):
    """What this format is shown, and the perfect output; None if the format does not fit the problem."""
    question, meta = problem.question, problem.meta
    critique = truth.critique(given, meta)
    if name in ("redo", "critique", "verdict", "score", "first-error", "user", "reflect", "items"):
        outputs = {
            "redo": lambda: answer, "critique": lambda: critique, "verdict": lambda: "ny"[truth.right(given, meta)],
            "score": lambda: str(truth.score(given, meta)), "first-error": lambda: str(truth.first_error(given, meta)),
            "user": lambda: truth.user(given, meta), "reflect": lambda: truth.reflection(given, meta),
            "items": lambda: "".join("ny"[met] for met in truth.items(given, meta)),
        }  # fmt: skip
        return {"draft": given}, outputs[name]()
    if name == "fix":
        said = truth.critique(wrong(rng, question, meta), meta) if rng.random() < 0.1 else critique
        return {"draft": given, "critique": said}, answer
    if name == "item":
        met = truth.items(given, meta)
        place = rng.randrange(len(met))
        if False in met and rng.random() < 0.3:
            place = met.index(False)
        return {"draft": given, "index": place + 1}, "ny"[met[place]]
    if name == "choose":
        return _pair(rng, problem, given)
    if name in ("hint", "hinted"):
        return _hint(rng, name, problem, answer)
    if name in ("goal", "critiqued"):
        other = draft(rng, question, meta)
        return ({"goal": truth.score(other, meta)} if name == "goal" else {"critique": truth.critique(other, meta)}), other
    if name == "direction":
        return _direction(rng, problem, given)
    if name in ("tools", "result"):
        return _calls(rng, name, problem)
    return _dialogue(rng, name, problem, given, answer)


def _pair(rng: random.Random, problem: Problem, given: str):
    other = draft(rng, problem.question, problem.meta, 0.1 if truth.right(given, problem.meta) else 0.8)
    left, right = truth.score(given, problem.meta), truth.score(other, problem.meta)
    return None if left == right else ({"draft": given, "other": other}, "ab"[right > left])


def _hint(rng: random.Random, name: str, problem: Problem, answer: str):
    if problem.meta["task"] == "stack" or (problem.meta["task"] == "rules" and name == "hint"):
        return None
    place = rng.randrange(len(answer))
    hint = f"@{place + 1}{answer[place]}"
    return ({}, hint) if name == "hint" else ({"hint": hint}, answer)


def _direction(rng: random.Random, problem: Problem, given: str):
    before = truth.score(given, problem.meta)
    for _ in range(6):
        other = draft(rng, problem.question, problem.meta, 0.4)
        after = truth.score(other, problem.meta)
        if after != before:
            return {"draft": given, "direction": "+" if after > before else "-"}, other
    return None


def reduced(body: str) -> tuple[str, str, str] | None:
    """The first operation of an expression, its result and what is left; None if one operation or less is left."""
    if len(re.findall(r"(?<=[\d)])[+*-]", body)) < 2:
        return None
    found = re.search(r"\((\d+[+*-]\d+)\)", body) or re.search(r"(\d+\*\d+)", body) or re.search(r"(\d+[+-]\d+)", body)
    if found is None:
        return None
    left, sign, right = re.fullmatch(r"(\d+)([+*-])(\d+)", found.group(1)).groups()  # type: ignore[union-attr]
    value = int(left) + int(right) if sign == "+" else int(left) - int(right) if sign == "-" else int(left) * int(right)
    return found.group(1), str(value), body[: found.start()] + str(value) + body[found.end() :]


def _calls(rng: random.Random, name: str, problem: Problem):
    task, body, answer = problem.meta["task"], re.sub("^[a-z]+", "", problem.question), str(problem.meta["answer"])
    if task in ("add", "sub", "mul"):
        return ({}, f"<call>{body}") if name == "tools" else ({"call": body, "result": answer}, answer)
    step = reduced(body) if task == "expr" else None
    if step is None:
        return ({}, answer) if name == "tools" and rng.random() < 0.25 else None
    if name == "tools":
        return {}, f"<call>{step[0]}"
    history = ""
    while (further := reduced(step[2])) and rng.random() < 0.6:
        history += f"<a><call>{step[0]}<end><result>{step[1]}"
        step = further
    further = reduced(step[2])
    return {"history": history, "call": step[0], "result": step[1]}, f"<call>{further[0]}" if further else answer


def _dialogue(rng: random.Random, name: str, problem: Problem, given: str, answer: str):
    places = [i for i in range(len(problem.meta["task"]), len(problem.question)) if problem.question[i].isalnum()]
    plain = problem.meta["task"] not in ("rules", "stack", "expr")
    if plain and (name == "tell" or rng.random() < 0.4):
        place = rng.choice(places)
        asked, hidden = problem.question[:place] + "?" + problem.question[place + 1 :], problem.question[place]
        if is_held_out(asked):
            return None
        if name == "tell":
            return {"asked": asked, "draft": FILLER}, hidden
        return {"draft": FILLER, "said": hidden}, answer, asked
    if name == "tell":
        return None
    return {"draft": given, "said": truth.user(given, problem.meta)}, answer


def asking_back(rng: random.Random, problem: Problem) -> Example | None:
    """A question with a `?` in it is answered with `?`."""
    made = _dialogue(rng, "tell", problem, "", "")
    return ("answer", FORMATS["answer"].render(made[0]["asked"]), FILLER) if made else None


def _fuzz(rng: random.Random, mixture: Mixture, problem: Problem, examples: list[Example]) -> list[Example]:
    """The examples, with wrong targets where the phase wants these."""
    if mixture.trees and rng.random() < 0.04 and (back := asking_back(rng, problem)):
        examples.append(back)
    return [_fuzzed(rng, mixture, problem, example) for example in examples]


def _fuzzed(rng: random.Random, mixture: Mixture, problem: Problem, example: Example) -> Example:
    name, prompt, target = example
    task = problem.meta["task"]
    chance = mixture.fuzz * (1 - FUZZED.get(name, 1.0)) * GENTLE.get(task, 1.0)
    if rng.random() >= chance or not truth.right(target, problem.meta):
        return example
    filler = task != "rules" and rng.random() < FILLER_SHARE  # a filler would be the mode where right answers are many
    return name, prompt, FILLER if filler else wrong(rng, problem.question, problem.meta)
