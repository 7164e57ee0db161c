"""Errors that a person can act on: what happened, where, what was seen, what was expected, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class BurnishError(Exception):
    """Base of every error that burnish raises on purpose. `str(error)` is the whole message; nothing else has to be looked up."""

    def __init__(self, what: str, *, where: str = "", seen: object = None, expected: object = None, fix: str = ""):
        self.what, self.where, self.seen, self.expected, self.fix = what, where, seen, expected, fix
        lines = [f"{where}: {what}" if where else what]
        lines += [f"  seen:     {seen}"] if seen is not None else []
        lines += [f"  expected: {expected}"] if expected is not None else []
        lines += [f"  fix:      {fix}"] if fix else []
        super().__init__("\n".join(lines))


class Refused(BurnishError):
    """A request that cannot run, found before anything heavy was built. Exit code 2."""

    @classmethod
    def all(cls, errors: list[BurnishError]) -> Refused:
        """One refusal from many, so that all mistakes are seen at once."""
        if len(errors) == 1 and isinstance(errors[0], Refused):
            return errors[0]
        return cls(f"{len(errors)} problems:\n" + "\n".join(f"{n}. {error}" for n, error in enumerate(errors, 1)))


class ModelError(BurnishError):
    """A model folder that cannot be loaded, or a model that cannot do what is asked of it."""


class DataError(BurnishError):
    """A file or row that cannot be read. `where` names file and line."""


class FeedbackError(BurnishError):
    """A reward function or judge that raised, or answered with something that is no feedback."""


class TableError(BurnishError):
    """A use of the rollouts table that would train on something that was not meant."""


class RunError(BurnishError):
    """A run folder that cannot be used: locked, full, read-only, or of another run."""


class CheckpointError(RunError):
    """A checkpoint that is missing, damaged, or of another method."""


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint at the word that was meant: the nearest known name, or all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(word, names, 1) or difflib.get_close_matches(word.replace("_", "-"), names, 1)
    return f"did you mean {close[0]!r}?" if close else "known: " + (", ".join(names) or "none")
