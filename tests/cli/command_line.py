"""The command line, called in this process."""

from types import SimpleNamespace

from click.testing import CliRunner

from burnish.cli import main

SMALL = ("--task", "sort", "--steps", "2", "--eval-size", "16", "--prompts", "2", "--group-size", "2", "--threads", "1")


def called(*words):
    """Run a command in this process: code, out, err."""
    done = CliRunner().invoke(main, [str(w) for w in words])
    return SimpleNamespace(code=done.exit_code, out=done.stdout, err=done.stderr)
