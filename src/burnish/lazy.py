"""Modules that load at first use, so that help, lists and errors answer without waiting for torch."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any


class Lazy(ModuleType):
    """Stands for a module; the first attribute that is asked for imports it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


def lazy(name: str) -> Any:
    """`torch = lazy("torch")`: method files and everything else that is read by `list` and `show` import this way."""
    return Lazy(name)
