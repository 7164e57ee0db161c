"""burnish train, burnish resume."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import BurnishError, Refused, RunError
from . import flags
from .quiet import without_chatter
from .text import as_json, number

if TYPE_CHECKING:
    from ..training.request import Request
    from .progress import Progress

USAGE = "burnish train METHOD [--config FILE.toml] [--OPTION VALUE ...] [--dry-run] [--json] [--quiet]"
ABOUT = f"""Usage: {USAGE}

  Train a policy and write a run folder. METHOD is a name of burnish list, or my_file.py:MyMethod.

  burnish train METHOD --help lists all options of a method. Some that all have:

    --task NAME|FILE.jsonl   where problems come from (default mix)
    --model NAME|FOLDER      what is trained (default tiny, which ships with burnish)
    --steps N --seed S --out DIR
    --credit ordinal         another part in a slot; --objective.low 0.1 sets an option of a part
    --config FILE.toml       options from a file; flags win

  --dry-run   say what would be built and run, and stop
  --json      the last line of stdout is one JSON object: run, metric, before, after, steps
  --quiet     no progress on stderr

  Exit codes: 0 done, 1 failed, 2 refused before anything was built, 130 interrupted (and saved)."""


class TrainCommand(click.Command):
    """Its options are those of the method, so it reads the command line itself."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        said = flags.read(args)
        if not said.words:
            if "help" not in said.switches:
                raise click.UsageError("which method? burnish list shows them", ctx)
            click.echo(ABOUT)
            ctx.exit()
        if len(said.words) > 1:
            raise click.UsageError(f"one method, please; what is {said.words[1]!r}?", ctx)
        ctx.params = {"said": said}
        return []

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["METHOD", "[--OPTION VALUE ...]"]

    def get_help(self, ctx: click.Context) -> str:
        return ABOUT


@click.command("train", cls=TrainCommand, short_help="Train a policy and write a run folder.")
def train_command(said: flags.Flags) -> None:
    """Train a policy and write a run folder."""
    word = said.words[0]
    if "help" in said.switches:
        click.echo(method_help(word))
        return
    request = requested(word, said)
    json_ = "json" in said.switches
    if "dry_run" in said.switches:
        from .plan import as_text, dry_run

        click.echo(as_json(dry_run(request), lines=True) if json_ else as_text(dry_run(request)))
        return
    from .progress import progress

    told = progress("quiet" in said.switches)
    finish(lambda: _started(request, told), told, json_)


def method_help(word: str) -> str:
    """All options of a method, by group."""
    from ..methods.registry import method
    from .catalogue import options_text
    from .describe import documented, options_of

    cls = method(word)
    usage = USAGE.replace("METHOD", word)
    return f"Usage: {usage}\n\n{documented(inspect.getdoc(cls))}\n\n{options_text(options_of(cls))}"


def requested(word: str, said: flags.Flags) -> Request:
    """File and flags together, checked. Raises Refused with all mistakes of both at once."""
    from ..methods.registry import method
    from ..training.request import resolve
    from .describe import types_of

    cls = method(word)
    filed, place = flags.from_file(said.config)
    options, errors = flags.bare(said.options, types_of(cls))
    whole = {**filed, **options}
    try:
        request = resolve(word, whole, origin=lambda key: "" if key in options else place(key))
    except Refused as error:
        raise together([*errors, error]) from None
    if errors:
        raise together(errors)
    if request.options.out and (Path(request.options.out) / "config.json").exists():
        fix = f"burnish resume {request.options.out}, or another --out"
        raise Refused("there is a run in this folder already", where=request.options.out, fix=fix)
    return request


def together(errors: list[BurnishError]) -> Refused:
    """Refusals as one flat list."""
    from ..training.request import apart

    return Refused.all([one for error in errors for one in apart(error)])


def _started(request: Request, told: Progress) -> Any:
    from ..training.run import start

    return start(request, told)


def finish(make: Callable[[], Any], told: Progress, json_: bool) -> None:
    """Build a run, see it to its end and say what came of it. The folder is given back whatever happens."""
    with without_chatter():
        run: Any = None
        try:
            run = make()
            told.begin(run)
            result = run.go()
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"stopped at once; go on with: burnish resume {told.folder}" if told.folder else "stopped") from None
        finally:
            told.close()
            if run is not None:
                run.folder.release()
    if json_:
        click.echo(as_json(result, lines=True))
        return
    click.echo(f"{result['metric']}: {number(result['before'])} -> {number(result['after'])} in {result['steps']} steps")
    click.echo(f"run:    {result['run']}\nreport: {Path(result['run']) / 'report.html'}")


@click.command("resume")
@click.argument("folder")
@click.option("--at", default="", metavar="CHECKPOINT", help="An earlier checkpoint, such as step-000040; what came after is done again.")
@click.option("--json", "json_", is_flag=True, help="The last line of stdout is one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
def resume_command(folder: str, at: str, json_: bool, quiet: bool) -> None:
    """Take up a run from its folder and finish it, as if it had never stopped."""
    from .progress import progress
    from .runs import is_run

    if not is_run(Path(folder)):
        raise RunError("there is no run in this folder", where=folder, fix="burnish runs lists them")
    told = progress(quiet)

    def resumed() -> Any:
        from ..training.run import resume

        return resume(Path(folder), told, at=at)

    finish(resumed, told, json_)
