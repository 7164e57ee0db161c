"""Combinations of models that are models: what a decoding-time method deploys."""
