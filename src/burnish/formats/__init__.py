"""Formats: the roles that a language model can be asked to play. No torch here."""

from burnish.formats.format import Format
from burnish.formats.readers import Call
from burnish.formats.registry import FORMATS

__all__ = ["FORMATS", "Call", "Format"]
