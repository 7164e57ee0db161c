"""Objectives, to be minimised, unreduced. The annotation says what a value belongs to: Steps, Rows, Pairs, Groups."""
