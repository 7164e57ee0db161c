"""burnish eval, burnish sample: how good a model is, and what it says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import ModelError, Refused
from .quiet import without_chatter
from .text import as_json, columns

if TYPE_CHECKING:
    from ..feedback.judge import Judge
    from ..training.request import RunOptions


def asked_of_both(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that eval and sample share: they say the same as in train."""
    options = (
        click.option("--task", help="A task, or a .jsonl file with prompts. A run folder brings its own."),
        click.option("--level", help="Difficulty of the task."),
        click.option("--judge", help="truth, or my_file.py:my_function."),
        click.option("--columns", help="Names in a file, as in prompt=question."),
        click.option("--style", help="How problems are worded: auto, compact, words."),
        click.option("--max-steps", help="Tokens an answer may take; 0: what the task says."),
        click.option("--dtype", help="float32, float64 or bfloat16."),
        click.option("--threads", help="Of torch; 0: all cores, at most 4 for small models."),
        click.option("--json", "json_", is_flag=True, help="JSON for scripts."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command("eval")
@click.argument("what", metavar="DIR|MODEL")
@click.option("--eval-size", help="Held-out problems.")
@asked_of_both
def eval_command(what: str, json_: bool, **said: Any) -> None:
    """How good is a model on held-out problems?

    DIR is a run folder: its model, on its own task unless another is said. MODEL is a name or folder as in train --model."""
    options, task, judge, make = subject(what, said)
    with without_chatter():
        from ..training.evaluate import evaluate, headline

        found = evaluate(make(), task, judge, size=options.eval_size)
    name, value = headline(found)
    row = {"of": what, "task": options.task, "level": options.level, "judge": judge.name if judge else None}
    row |= {"metric": f"held-out {name}", "value": value, **{k: v for k, v in found.items() if k != "samples"}}
    if json_:
        click.echo(as_json(row, lines=True))
        return
    from .progress import scored

    click.echo(f"{what} on {options.task}: {scored(found)}")
    if found.get("by_task"):
        click.echo(columns([[n, f"{x:.4f}"] for n, x in found["by_task"].items()], indent="  "))


@click.command("sample")
@click.argument("what", metavar="DIR|MODEL")
@click.argument("prompts", nargs=-1, metavar="[PROMPT]...")
@click.option(
    "-n", "--number", type=click.IntRange(1), default=4, show_default=True, help="Answers per PROMPT; without, problems of the task."
)
@click.option("--temperature", type=click.FloatRange(0), default=1.0, show_default=True, help="0 is greedy.")
@click.option(
    "--top-p", type=click.FloatRange(0, 1), default=1.0, show_default=True, help="Draw from the most probable tokens of this mass."
)
@click.option("--top-k", type=click.IntRange(0), default=0, show_default=True, help="Draw from so many tokens; 0: all.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Every draw follows from it.")
@asked_of_both
def sample_command(what: str, prompts: tuple[str, ...], number: int, seed: int, json_: bool, **said: Any) -> None:
    """What does a model say? To each PROMPT, or to held-out problems of a task.

    DIR is a run folder: its model, on its own task unless another is said. MODEL is a name or folder as in train --model."""
    support = {n: said.pop(n) for n in ("temperature", "top_p", "top_k")}
    if prompts and said["task"]:
        raise click.UsageError("give prompts or a task, not both")
    judged = not prompts or said["judge"] is not None
    options, task, judge, make = subject(what, said)
    with without_chatter():
        from ..types.chance import mix

        rows = _drawn(make(), task, judge if judged else None, prompts, number, mix(seed, "sample"), options, support)
    if json_:
        for row in rows:
            click.echo(as_json(row, lines=True))
        return
    for row in rows:
        reward = f"  (reward {row['reward']:.4g})" if row.get("reward") is not None else ""
        click.echo(f"{click.style(str(row['prompt']), dim=True)} -> {row['answer']}{reward}")


def _drawn(
    model: Any,
    task: Any,
    judge: Judge | None,
    prompts: tuple[str, ...],
    number: int,
    key: Any,
    options: RunOptions,
    support: dict[str, Any],
) -> list[dict[str, Any]]:
    """One row per answer: prompt, answer, how it ended, and its reward where somebody judges."""
    from ..types.context import Context, StopReason

    contexts = [Context(f"prompt/{i}", p) for i, p in enumerate(prompts)] if prompts else task.held_out(number)
    most = options.max_steps or task.max_steps
    drawn = model.sample(contexts, number if prompts else 1, key=key, max_steps=most, **support)
    drawn = drawn.hear(judge.judge(drawn)) if judge else drawn
    rows = []
    for i, context in enumerate(drawn.contexts):
        row = {"prompt": context.prompt, "answer": drawn.text[i], "stop": StopReason(int(drawn.stop[i])).name.lower()}
        rows.append(row | ({"reward": float(drawn.reward[i])} if judge else {}))
    return rows


def subject(what: str, said: dict[str, Any]) -> tuple[RunOptions, Any, Judge | None, Callable[[], Any]]:
    """What is asked about: options, task, judge, and how the model is made. Raises Refused before anything is loaded."""
    from ..training.request import RunOptions, question
    from .runs import is_run

    given = {n: v for n, v in said.items() if v is not None}
    path = Path(what)
    if not is_run(path):
        asked = question({"model": what, **given})
        return *asked, lambda: _loaded(asked[0])
    kept = {n: v for n, v in _config(path)["said"].items() if n in RunOptions.__dataclass_fields__ and n not in ("out", "lora")}
    if (path / "model").is_dir():
        asked = question({**kept, **given, "model": str(path / "model")})
        _mind_the_judge(path, asked[2], given)
        return *asked, lambda: _loaded(asked[0])
    return _of_decoding(path, {**_config(path)["said"], **given, "out": ""})


def _of_decoding(path: Path, said: dict[str, Any]) -> tuple[RunOptions, Any, Judge | None, Callable[[], Any]]:
    """A decoding method writes no weights: it is built again around its model."""
    from ..training.request import resolve

    request = resolve(_config(path)["method"], said)
    if request.method.kind == "method":
        raise ModelError("this run has written no model yet", where=str(path), fix=f"finish it: burnish resume {path}")

    def deployed() -> Any:
        from ..training.run import build

        _threads(request.options)
        return build(request).deploy()

    return request.options, request.task, request.judge, deployed


def _config(path: Path) -> dict[str, Any]:
    from ..training.folder import RunFolder

    found: dict[str, Any] = RunFolder(path).read("config.json")
    return found


def _mind_the_judge(path: Path, judge: Judge | None, given: dict[str, Any]) -> None:
    """A judge that was given in Python is not in the folder: say so, and never put another in its place."""
    name = _config(path)["resolved"].get("judge", "none")
    if "judge" in given or "task" in given or name == (judge.name if judge else "none"):
        return
    raise Refused(
        f"the judge of this run, {name!r}, was given in Python", where=str(path), fix="--judge my_file.py:my_function, or --judge truth"
    )


def _threads(options: RunOptions) -> None:
    import torch

    from ..training.run import default_threads

    torch.set_num_threads(options.threads or default_threads(options.model))


def _loaded(options: RunOptions) -> Any:
    from ..models.load import load

    _threads(options)
    return load(options.model, dtype=options.dtype)
