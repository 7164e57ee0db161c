from typing import ClassVar

from ...parts import objectives, use
from ..offline import Offline


class SFT(Offline):
    """Supervised fine-tuning: cross-entropy on demonstrations, every token with the same weight."""

    paper: ClassVar[str] = "maximum likelihood"
    objective = use(objectives.nll)
