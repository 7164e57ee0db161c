from typing import ClassVar

from ...parts import credit, divergences, measures, objectives, use
from ..on_policy import OnPolicy


class GRPO(OnPolicy):
    """Group relative policy optimization: the other answers to a context are the baseline, their spread the scale. arXiv 2402.03300.

    beta = penalty.weight is 0.04 in the paper; later practice leaves the penalty out (`--penalty none`)."""

    paper: ClassVar[str] = "arXiv 2402.03300"
    credit = use(credit.normalized)
    objective = use(objectives.clip)
    penalty = (use(divergences.k3, weight=0.04),)
    measure = (measures.ratio, measures.clip_share, measures.advantage_spread)
    reduction = "sequence_mean"
