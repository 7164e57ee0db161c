"""A few rollouts kept for reading: pieces of text with the credit that each step got."""

from __future__ import annotations

from typing import Any

from ..types.context import StopReason
from ..types.table import Rollouts

ROWS = 16  # of each table that is kept


def shown(batch: Rollouts, model: Any, step: int) -> list[dict[str, Any]]:
    """Plain rows: prompt, answer, reward, items, and per step its text, log-prob and advantage."""
    out = []
    for row in range(min(ROWS, len(batch))):
        n = int(batch.length[row])
        ids = batch.steps[row, :n].tolist()
        pieces = model.pieces_of_text(ids) if hasattr(model, "pieces_of_text") else [str(i) for i in ids]
        one = {"step": step, "context": batch.contexts[row].id, "prompt": str(batch.contexts[row].prompt), "answer": batch.text[row]}
        one |= {
            "reference": str(batch.contexts[row].root.meta.get("answer", "")),
            "stop": StopReason(int(batch.stop[row])).name,
            "pieces": pieces,
        }
        if "reward" in batch:
            one["reward"] = _plain(float(batch.reward[row]))
        for name in ("sampled_logp", "advantage"):
            if name in batch:
                one[name] = [_plain(x) for x in batch.columns[name][row, :n].tolist()]
        one["items"] = {k: [_plain(x) for x in v[row].tolist()] for k, v in batch.feedback.items.items()}
        out.append(one)
    return out


def _plain(x: float) -> float | None:
    """A number for JSON: rounded for reading, None where nobody said anything."""
    return None if x != x else round(x, 6)
