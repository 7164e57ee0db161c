"""Rewards: what is added to, taken from or placed in what the judges said. (B,) becomes `reward`, (B,T) becomes `step_reward`."""
