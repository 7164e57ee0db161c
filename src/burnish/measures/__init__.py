"""Measures: what is reported. Pure functions of the whole table of a step, so no number depends on micro-batches."""
