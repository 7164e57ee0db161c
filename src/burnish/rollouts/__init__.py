"""Gatherers: how a policy and a task together make a table."""
