"""How far two policies are apart: from log-probs of sampled steps, or exactly from next-step distributions."""
