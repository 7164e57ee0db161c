"""The first line of every part: are the shapes what the formula means?"""

from __future__ import annotations

from torch import Tensor

from ..errors import TableError


def expect(letters: str, **tensors: Tensor) -> None:
    """Raise TableError unless every tensor has one axis per letter ("B", "BT") and all have the same shape."""
    first = None
    for name, x in tensors.items():
        shape = tuple(x.shape)
        first = shape if first is None else first
        if len(shape) != len(letters) or shape != first:
            other = next(iter(tensors))
            expected = f"({','.join(letters)})" + (f", like {other} {first}" if name != other else "")
            raise TableError(f"{name} has the wrong shape", seen=shape, expected=expected)
