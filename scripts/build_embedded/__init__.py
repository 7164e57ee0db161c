"""Builds the embedded language models: tokenizer, training rows, pretraining, fuzz, evaluation. Run `python -m scripts.build_embedded`."""
