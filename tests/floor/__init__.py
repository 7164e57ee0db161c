"""The floor: nouns and pure functions."""
