from typing import ClassVar

from ...parts import keep, objectives, use
from ..on_policy import OnPolicy


class RAFT(OnPolicy):
    """Reward ranked fine-tuning: imitate the best answer of each group. arXiv 2304.06767."""

    paper: ClassVar[str] = "arXiv 2304.06767"
    keep = (keep.best_of_group,)
    objective = use(objectives.nll)
    measure = ()
