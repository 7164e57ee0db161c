"""The command line. Help, lists and refusals answer without loading torch; a command imports what it needs when it runs."""

from .group import main

__all__ = ["main"]
