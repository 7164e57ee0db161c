from typing import TYPE_CHECKING, ClassVar

from ...lazy import lazy
from ...parts import credit, use
from .reinforce import REINFORCE

if TYPE_CHECKING:
    import torch

    from ...types.table import Rollouts
else:
    torch = lazy("torch")


class ReMax(REINFORCE):
    """The baseline is the reward of the greedy answer to the same context: no critic, one extra answer. arXiv 2310.10505."""

    paper: ClassVar[str] = "arXiv 2310.10505"
    attaches = ("greedy_reward",)
    credit = use(credit.above_greedy)

    def judge(self, batch: "Rollouts") -> "Rollouts":
        batch = super().judge(batch)
        contexts = list(dict.fromkeys(batch.contexts))
        greedy = super().judge(self.rollout(contexts, purpose="greedy", temperature=0.0)).reward
        place = {c.id: i for i, c in enumerate(contexts)}
        baseline = greedy[torch.tensor([place[c.id] for c in batch.contexts])]
        unknown = torch.where(baseline.isnan(), torch.nan, batch.reward)  # rows without a baseline leave like unjudged ones
        return batch.attach(greedy_reward=baseline, reward=unknown)
