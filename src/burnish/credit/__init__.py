"""Credit: how much each row (B,) or step (B,T) did for its outcome."""
