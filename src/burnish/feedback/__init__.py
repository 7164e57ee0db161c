"""Judges: whoever says how it went. To a method they are all one thing: `judge(rollouts) -> Feedback`."""
