from typing import TYPE_CHECKING, ClassVar

from ...parts import keep, objectives, rewards, use
from ...types.context import Context
from ...types.limits import Positive
from .grpo import GRPO

if TYPE_CHECKING:
    from ...types.table import Rollouts


class DAPO(GRPO):
    """Decoupled clip and dynamic sampling: GRPO with more room above, token mean, no KL, a soft penalty on overlong answers, and
    contexts drawn until `prompts` groups disagree. arXiv 2503.14476.

    Every sample counts in the ledger, those of dropped groups too. `reward.limit` and `reward.buffer` are in steps; groups are held to
    disagree by what the judge said, before the length penalty."""

    paper: ClassVar[str] = "arXiv 2503.14476"
    reward = (use(rewards.overlong, limit=16, buffer=4),)
    keep = (keep.mixed_groups,)
    objective = use(objectives.clip, low=0.2, high=0.28)
    penalty = ()
    reduction = "token_mean"
    rounds: Positive = 4  # draws of `prompts` contexts before it goes on with what it has

    def collect(self, contexts: list[Context]) -> "Rollouts":
        batch = self.ask(self.draw(contexts))
        for number in range(1, self.rounds):
            mixed = self._mixed(batch)
            if mixed.group.unique().numel() >= self.prompts:
                break
            more = self.ask(self.draw(self.contexts(), purpose=f"round {number}"))
            batch = mixed.concat(more) if len(mixed) else more
        return self._first(batch) if self.rounds > 1 else batch

    def _mixed(self, batch: "Rollouts") -> "Rollouts":
        judged = batch.select(batch.said("reward"))
        return judged.select(self.call(keep.mixed_groups, judged))

    def _first(self, batch: "Rollouts") -> "Rollouts":
        """At most `prompts` groups, the disagreeing ones first to come."""
        mixed = self._mixed(batch)
        groups = list(dict.fromkeys(mixed.group.tolist()))[: self.prompts]
        return mixed.select((mixed.group[:, None] == mixed.group.new_tensor(groups)).any(1)) if groups else batch
