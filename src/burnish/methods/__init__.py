"""Methods: one file per published system, by family. Read base.py first."""
