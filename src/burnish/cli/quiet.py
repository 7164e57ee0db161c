"""Other libraries keep silent while a command of ours works."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

QUIET = {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "TOKENIZERS_PARALLELISM": "false"}


@contextmanager
def without_chatter() -> Iterator[None]:
    """No progress bars and no advice of transformers on stderr. Loads transformers: only for commands that load models."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
