"""Speed, as ratios of medians measured side by side in one run. `python -m benchmarks`."""
