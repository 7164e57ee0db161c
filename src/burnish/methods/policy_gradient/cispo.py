from typing import ClassVar

from ...parts import objectives, use
from .grpo import GRPO


class CISPO(GRPO):
    """Clipped importance weights, unclipped gradients: rare pivotal steps keep theirs. arXiv 2506.13585."""

    paper: ClassVar[str] = "arXiv 2506.13585"
    objective = use(objectives.cispo)
    penalty = ()
    reduction = "token_mean"
