"""On-policy: what did better than expected becomes more likely."""
