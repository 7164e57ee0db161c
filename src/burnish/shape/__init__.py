"""Shapes: advantage (B,T) -> advantage (B,T). Each says whether a row's total is conserved."""
