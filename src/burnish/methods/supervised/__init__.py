"""Imitation of what is written down."""
