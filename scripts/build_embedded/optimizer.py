"""Muon for the matrices (orthogonalised momentum; Jordan et al. 2024), AdamW for the rest. Matrices of one shape go together."""

from __future__ import annotations

import torch
from torch import nn


def orthogonal(matrices: torch.Tensor, steps: int = 5) -> torch.Tensor:
    """Towards the nearest orthogonal matrices by a quintic Newton-Schulz iteration; (N, rows, columns)."""
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x.mT if tall else x


class Optimizer:
    """Both optimizers behind one `step`; `rate` is the learning rate of AdamW, Muon's updates are scaled to AdamW's usual size."""

    def __init__(self, model: nn.Module, rate: float, decay: float = 0.05, momentum: float = 0.95) -> None:
        matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
        chosen = {id(p) for p in matrices}
        rest = [p for p in model.parameters() if id(p) not in chosen]
        self.adam = torch.optim.AdamW(rest, lr=rate, betas=(0.9, 0.98), weight_decay=0.0)
        self.groups: list[list[torch.Tensor]] = [[p for p in matrices if p.shape == shape] for shape in sorted({p.shape for p in matrices})]
        self.velocities = [torch.zeros(len(group), *group[0].shape) for group in self.groups]
        self.rate, self.decay, self.momentum = rate, decay, momentum

    @torch.no_grad()
    def step(self, scale: float) -> None:
        """One update at `scale` times the learning rate; clears the gradients."""
        for group, velocity in zip(self.groups, self.velocities, strict=False):
            gradient = torch.stack([p.grad for p in group])
            velocity.lerp_(gradient, 1 - self.momentum)
            update = orthogonal(gradient.lerp(velocity, self.momentum))
            size = 0.2 * max(update.shape[-2:]) ** 0.5
            for p, change in zip(group, update, strict=False):
                p.mul_(1 - self.rate * scale * self.decay).add_(change, alpha=-self.rate * scale * size)
                p.grad = None
        for options in self.adam.param_groups:
            options["lr"] = self.rate * scale
        self.adam.step()
        self.adam.zero_grad(set_to_none=True)

    def state(self) -> dict:
        """Everything that a continued run needs."""
        return {"adam": self.adam.state_dict(), "velocities": self.velocities}

    def load_state(self, state: dict) -> None:
        """Continue from a state."""
        self.adam.load_state_dict(state["adam"])
        self.velocities = state["velocities"]
