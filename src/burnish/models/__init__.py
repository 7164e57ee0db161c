"""Models: what samples, scores and learns. Methods speak to the verbs of `Model` and never to a network."""
