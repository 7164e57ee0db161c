"""The README of the embedded models, from the log and the table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

TOP = """# The embedded models

Three language models of 1.2 M parameters (Llama: hidden 128, 6 layers, 4 heads, 2 key-value heads, feed-forward 384, tied embeddings,
float32) in Hugging Face format, so that everything in burnish runs offline on a laptop. Licence: Apache-2.0, weights included. They were
trained from nothing on problems that `burnish.tasks` draws; no other data went in.

| folder | what it is | use it as |
|---|---|---|
| `tiny` | a state of the same run as `tiny-clean`, then fuzzed: it knows more than it samples | the actor that is trained |
| `tiny-clean` | before the fuzz | critic, judge, reference, user |
| `tiny-teacher` | the same run, trained longer and on harder levels, never fuzzed | teacher |

## Grammar
One token per character, per task name and per control (`<q>`, `<a>`, `<crit>`, ...); text that is not printable ASCII is `<unk>`. The chat
template writes a user's message as `<q>...`, an answer as `<a>...<end>`, a tool's as `<result>...`, a system message as `<sys>...` (never
trained). `burnish.formats.FORMATS` has the layout of every role. `<pad>` and `<unk>` were never targets, and there are no unused ids: the
vocabulary has no padding.

## How they were built
"""

NOTES = """
A training row is a tree: question and draft are there once, every role is a branch (4-D mask, positions are depths), so a branch reads
exactly what it reads alone. Loss on outputs only. Half of the drafts are right; from the second stage on 30 % of the trees stand on the
model's own wrong samples or on problems that it got wrong. One fix in ten is shown a false critique. No held-out question
(`burnish.tasks.base.is_held_out`) was trained on in any format; the clarifying questions with a `?` obey the same rule by their own text.
In the fuzz only answer, redo, fix, hinted and turn get wrong targets; answer: 45 % right, 33 % plausible wrong, 22 % `?`; fewer for expr,
mul and stack, none for count, and no `?` for rules (where right answers are many, one filler would be what the model says greedily).
The rate was chosen by two runs of three minutes (2e-3 was slower, 1e-2 no faster than 5e-3). bfloat16 was ten times slower than float32
on the machine of the build.
"""


def percent(cell: dict[str, Any] | None) -> str:
    """`.95`, or a dash where nothing was measured."""
    return "-" if cell is None else f"{cell['value']:.2f}".removeprefix("0") if cell["value"] < 1 else "1.0"


def rows_of(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    lines = [list(header), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def answer_table(table: dict[str, Any]) -> str:
    """Greedy/sampled accuracy by task and level, for every model."""
    columns = [(model, level) for model in table["models"] for level in "123"]
    found = {model: made["answer"] for model, made in table["models"].items()}
    rows = [
        [task, *(f"{percent(found[m][task][f'{level} greedy'])}/{percent(found[m][task][f'{level} sampled'])}" for m, level in columns)]
        for task in next(iter(found.values()))
    ]
    means = []
    for model, level in columns:
        tasks = [task for task in found[model] if task != "stack"]
        both = [sum(found[model][task][f"{level} {kind}"]["value"] for task in tasks) / len(tasks) for kind in ("greedy", "sampled")]
        means.append("/".join(f"{value:.2f}" for value in both))
    return rows_of(["task", *(f"{model} {level}" for model, level in columns)], [*rows, ["mean without stack (`mix`)", *means]])


def format_table(made: dict[str, Any]) -> str:
    """Greedy accuracy by task and format at level 1."""
    names = list(dict.fromkeys(name for cells in made["formats"].values() for name in cells))
    rows = [[task, *(percent(cells.get(name)) for name in names)] for task, cells in made["formats"].items()]
    return rows_of(["task", *names], rows)


def render(table: dict[str, Any]) -> str:
    """The whole README."""
    text = TOP + table["provenance"] + NOTES + "\n## Answers: greedy/sampled (temperature 1), by level, on held-out questions\n"
    text += f"About {table['n']} questions a cell, two samples of each for the sampled share; a standard error is at most "
    text += f"{0.5 / table['n'] ** 0.5:.2f}; `table.json` has n and the standard error of every cell.\n\n" + answer_table(table)
    for model, made in table["models"].items():
        if made["formats"]:
            text += f"\n## `{model}` by format, greedy, level 1\n{FORMATS_SAY}\n" + format_table(made)
            tool = ", ".join(f"level {level}: {percent(cell)}" for level, cell in made["with tool"].items())
            text += f"\n`expr` with a calculator that answers its calls: {tool}.\n"
            text += MENDING_SAYS.format(model=model) + rows_of(
                ["task, level", *next(iter(made["mending"].values()))],
                [[name, *(percent(found) for found in cells.values())] for name, cells in made["mending"].items()],
            )
    return text + table.get("notes", "")


MENDING_SAYS = """
### `{model}` on what `tiny` samples
verdict: on all samples without `?`; the others: on up to 100 wrong ones. critique: exactly right; then the share that is right after
answering again without a critique, with the true one, with the model's own and with one that belongs to another draft.

"""


FORMATS_SAY = (
    "redo, fix, turn: the draft is wrong, the share of right answers. Others: half of the drafts are right. critique, first-error, user, "
    "reflect, items, hint: exactly right; goal: a draft of exactly this score; direction: moved the right way; critiqued: this critique is "
    "true of it; choose, verdict, item: guessing gives about .5.\n"
)


def provenance(logs: dict[str, list[dict[str, Any]]], seed: int, versions: str) -> str:
    """Command, seed, and what each stage took."""
    command = "python -m scripts.build_embedded first second clean tiny teacher table"
    text = f"`{command}` with seed {seed}, one thread, {versions}. The number of\n"
    text += "steps is fixed in the script; the seconds are those of the machine it ran on, which did other work at the same time.\n"
    text += "`training_log.jsonl` has a row per 50 steps: mean loss per target token by format.\n\n"
    rows = []
    for stage, log in logs.items():
        steps = sum(row["step"] for i, row in enumerate(log) if i + 1 == len(log) or log[i + 1]["phase"] != row["phase"])
        rows.append([stage, str(steps), f"{log[-1]['tokens'] / 1e6:.1f} M", f"{log[-1]['seconds']:.0f}"])
    return text + rows_of(["stage", "steps", "tokens", "seconds"], rows)
