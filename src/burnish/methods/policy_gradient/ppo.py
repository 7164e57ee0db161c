from typing import ClassVar

from ...memory.controllers import AdaptiveKL
from ...parts import credit, measures, objectives, rewards, shape, use
from ..on_policy import OnPolicy


class PPO(OnPolicy):
    """Clipped ratio, generalized advantages from a critic, and a KL in the reward whose weight steers itself. arXiv 1707.06347, 2009.01325.

    The critic is a copy of the policy with a value head; it comes because gae asks for `critic_value`."""

    paper: ClassVar[str] = "arXiv 1707.06347"
    kl_weight = AdaptiveKL(0.05, target=6.0, horizon=10000)
    reward = (rewards.minus_step_kl,)
    credit = use(credit.gae, gamma=1.0, lam=0.95)
    shape = (shape.whiten,)
    objective = use(objectives.clip)
    critic_objective = use(objectives.value_squared, clip=0.2)
    measure = (measures.ratio, measures.clip_share, measures.advantage_spread, measures.kl_to_reference)
    epochs = 4
