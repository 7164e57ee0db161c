from typing import Any, ClassVar

from ...lazy import lazy
from ...types.limits import Positive
from ..base import Method

combinations: Any = lazy("burnish.decoding.best_of")


class BestOfN(Method):
    """Best of n: draw n answers, give the one that the judge likes best. No weights change. arXiv 2009.01325.

    The judge sees every candidate, so with the task's own verifier this is the coverage of n answers, not a policy that could do
    without it."""

    kind: ClassVar[str] = "decoding"
    paper: ClassVar[str] = "arXiv 2009.01325"
    sees_truth: ClassVar[bool] = True
    unused: ClassVar[tuple[str, ...]] = ("prompts",)
    n: Positive = 8  # candidates per context

    def deploy(self) -> Any:
        return combinations.BestOf(self.policy, self.judged_by, self.n)
