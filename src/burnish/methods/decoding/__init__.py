"""Better answers from the same weights."""
