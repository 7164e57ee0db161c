from typing import ClassVar

from ...parts import credit, objectives, use
from ..on_policy import OnPolicy


class REINFORCE(OnPolicy):
    """The score function estimator: what was drawn becomes more likely by its return to go. Williams 1992.

    No baseline of its own; `--credit batch_centered` gives it one."""

    paper: ClassVar[str] = "Williams 1992"
    credit = use(credit.return_to_go)
    objective = use(objectives.score)
    reduction = "sequence_sum"
