"""The commands together, and what becomes of their errors: a message a person can act on, and an exit code a script can."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from typing import Any

import click

from .. import __version__
from ..errors import BurnishError, Refused, nearest
from .catalogue import list_command, show_command
from .model import eval_command, sample_command
from .runs import runs_command
from .train import resume_command, train_command

DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


class Commands(click.Group):
    """A group that turns errors into messages: 0 done, 1 failed, 2 usage, 130 interrupted."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except BaseException as error:
            ctx.exit(told(error))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            ctx.fail(f"there is no command {args[0]!r}; {nearest(args[0], self.commands)}")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order in which one meets them


def told(error: BaseException) -> int:
    """Say an error on stderr. Returns the exit code; raises what is not ours to tell."""
    if isinstance(error, OSError) and error.errno == errno.EPIPE:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - the reader of our output has gone; nothing is left to say
        return FAILED
    if isinstance(error, SystemExit | GeneratorExit):
        raise error
    if os.environ.get("BURNISH_TRACEBACK"):
        traceback.print_exception(error)
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Interrupted":
        click.echo(str(error) or "stopped", err=True)
        return INTERRUPTED
    if isinstance(error, BurnishError):
        click.echo(f"{click.style('error:', fg='red', bold=True)} {error}", err=True)
        return USAGE if isinstance(error, Refused) else FAILED
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    click.echo(f"{click.style('error:', fg='red', bold=True)} {what} (BURNISH_TRACEBACK=1 shows where)", err=True)
    return FAILED


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="burnish")
def main() -> None:
    """Train any policy from any feedback.

    burnish train grpo --task mix trains the model that ships with burnish, offline, in about a minute."""


for _command in (train_command, resume_command, runs_command, eval_command, sample_command, list_command, show_command):
    main.add_command(_command)
