"""What a drawn and judged table looks like, before anything leaves it."""

from __future__ import annotations

import torch

from ..credit.groups import group_mean, unanimous
from ..types.context import StopReason
from ..types.table import Rollouts


def samples(batch: Rollouts) -> dict[str, float]:
    """Counts, reward, lengths, entropy and stop reasons of a table; shares are of all rows, rewards of the judged ones."""
    if not len(batch):
        return {"rows": 0}
    trained = batch.mask.sum(1)
    out = {"rows": len(batch), "sampled_steps": int(trained.sum()), "length_mean": float(trained.double().mean())}
    out["truncated_share"] = _share(batch.stop == StopReason.LIMIT)
    out["failed_rows"] = int((batch.stop == StopReason.FAILED).sum())
    if "sampled_entropy" in batch and trained.sum():
        out["entropy"] = float(batch.sampled_entropy[batch.mask].double().mean())
    if "reward" in batch:
        said = batch.said("reward")
        reward, group = batch.reward[said].double(), batch.group[said]
        out["unjudged_rows"] = int((~said).sum())
        if len(reward):
            out |= {"reward_mean": float(reward.mean()), "reward_std": float(reward.std(correction=0)), "right_share": _share(reward >= 1)}
            several = (group >= 0) & (group_mean(reward, group)[1] > 1)
            if several.any():
                out["unanimous_share"] = _share(unanimous(reward, group)[several])
    return out


def _share(x: torch.Tensor) -> float:
    return float(x.double().mean())
