"""Train the embedded model with a reward of one's own: short answers, in order. Run it: python examples/own_reward.py"""

import burnish
from burnish.feedback.function import Functions


def short(answer):
    """1 for an empty answer, falling to 0 at 16 characters."""
    return max(0.0, 1 - len(answer) / 16)


def sorted_digits(answer, reference):
    """1 for the right answer, None (no opinion) where the row has no reference."""
    return None if reference is None else float(answer.strip() == reference)


def main(**smaller):
    judge = Functions([sorted_digits, short], weights=[1.0, 0.1])
    run = burnish.train("grpo", judge=judge, **{"task": "sort", "steps": 20, **smaller})
    print(f"held-out reward {run.before['sampled']:.3f} -> {run.after['sampled']:.3f}, everything in {run.folder.path}")
    return run


if __name__ == "__main__":
    main()
