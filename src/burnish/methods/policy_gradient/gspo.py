from typing import ClassVar

from ...parts import objectives, use
from .grpo import GRPO


class GSPO(GRPO):
    """Group sequence policy optimization: the unit of the ratio is the unit of the reward, the whole answer. arXiv 2507.18071."""

    paper: ClassVar[str] = "arXiv 2507.18071"
    objective = use(objectives.clip, ratio="sequence", low=3e-4, high=4e-4)
    penalty = ()
