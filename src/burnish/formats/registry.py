"""Every format by name."""

from __future__ import annotations

from burnish.formats import readers
from burnish.formats.format import Format

ATTEMPT = "{question}\n\nHere is an attempt at this: {draft}\n\n"

_ALL = (
    Format("answer", "answer", "<q>{question}<a>", readers.text, words="{question}"),
    Format("redo", "answer", "<q>{question}<a>{draft}<redo>", readers.text, ("draft",),
           ATTEMPT + "Answer again, better if you can. Give just the answer."),
    Format("critique", "critique", "<q>{question}<a>{draft}<crit>", readers.remark, ("draft",),
           ATTEMPT + "What is wrong with it? Say it in one sentence, or say ok."),
    Format("fix", "answer", "<q>{question}<a>{draft}<crit>{critique}<fix>", readers.text, ("draft", "critique"),
           ATTEMPT + "A reader says: {critique}\n\nAnswer again. Give just the answer."),
    Format("first-error", "index", "<q>{question}<a>{draft}<error>", readers.number, ("draft",),
           ATTEMPT + "At which place, counted from 1, is the first error? Give just the number, 0 if there is none."),
    Format("choose", "choice", "<q>{question}<a>{draft}<b>{other}<judge>", readers.choice, ("draft", "other"),
           "{question}\n\nAnswer A: {draft}\nAnswer B: {other}\n\nWhich is better? Say just A or B."),
    Format("verdict", "verdict", "<q>{question}<a>{draft}<verdict>", readers.yes, ("draft",), ATTEMPT + "Is it right? Say just yes or no."),
    Format("score", "score", "<q>{question}<a>{draft}<score>", readers.digit, ("draft",),
           ATTEMPT + "How good is it, from 0 (useless) to 9 (fully right)? Give just the digit."),
    Format("item", "verdict", "<q>{question}<a>{draft}<item>{index}", readers.yes, ("draft", "index"),
           ATTEMPT + "Does it meet requirement number {index}? Say just yes or no."),
    Format("items", "items", "<q>{question}<a>{draft}<items>", readers.items, ("draft",),
           ATTEMPT + "Go through the requirements one by one. For each say yes or no, separated by commas, and nothing else."),
    Format("hint", "hint", "<q>{question}<hint>", readers.remark, (),
           "{question}\n\nDo not answer this. Give one short hint that helps someone to answer it."),
    Format("hinted", "answer", "<q>{question}<hint>{hint}<a>", readers.text, ("hint",), "{question}\n\nHint: {hint}"),
    Format("goal", "answer", "<q>{question}<goal>{goal}<a>", readers.text, ("goal",),
           "{question}\n\nWrite an answer that deserves {goal} of 9 points."),
    Format("direction", "answer", "<q>{question}<a>{draft}<dir>{direction}<a>", readers.text, ("draft", "direction"),
           ATTEMPT + "Write another one. It shall be {direction} (+ better, - worse). Give just the answer."),
    Format("critiqued", "answer", "<q>{question}<crit>{critique}<a>", readers.text, ("critique",),
           "{question}\n\nWrite an answer about which a reader would say: {critique}"),
    Format("tools", "call", "<q>{question}<tools><a>", readers.call),
    Format("result", "call", "<q>{question}<tools>{history}<a><call>{call}<end><result>{result}<a>", readers.call, ("call", "result")),
    Format("turn", "turn", "<q>{question}{history}<a>{draft}<end><q>{said}<a>", readers.text, ("draft", "said")),
    Format("user", "turn", "<q>{question}<a>{draft}<user>", readers.remark, ("draft",),
           "You asked: {question}\n\nYou were told: {draft}\n\nWhat do you say next? Do not give the answer away."),
    Format("tell", "turn", "<q>{asked}<a>{draft}<goal>{question}<user>", readers.remark, ("asked", "draft"),
           "You want to know: {question}\n\nYou said: {asked}\n\nYou were asked back: {draft}\n\nWhat do you say?"),
    Format("reflect", "critique", "<q>{question}<a>{draft}<reflect>", readers.remark, ("draft",),
           ATTEMPT + "What shall be remembered for the next attempt? One sentence."),
)  # fmt: skip

FORMATS: dict[str, Format] = {format.name: format for format in _ALL}
"""Parts by name: draft, other, critique (`@2>`), index (from 1), hint (`@2b`), goal (0-9), direction (`+` better, `-` worse), call (`1+8`),
result (`9`), history (earlier calls or turns in the grammar), said (what the user said),
 asked (a question with `?` where something is missing)."""
