"""Keeps: bool (B,), the rows that stay, or bool (B,T), the steps that are trained on."""
