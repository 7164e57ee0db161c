"""Types of options with their ranges, by the names that annotations use. Needs no torch."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le

Positive = Annotated[int, Gt(0)]  # 1, 2, 3, ...
Count = Annotated[int, Ge(0)]  # 0, 1, 2, ...
Share = Annotated[float, Ge(0), Le(1)]  # in [0, 1]
Size = Annotated[float, Gt(0)]  # above 0
Reduction = Literal["token_mean", "sequence_mean", "sequence_sum"] | tuple[Literal["constant"], float]

NAMES: dict[str, Any] = {
    "Positive": Positive,
    "Count": Count,
    "Share": Share,
    "Size": Size,
    "Reduction": Reduction,
    "Literal": Literal,
    "Any": Any,
    "None": None,
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
    "tuple": tuple,
    "list": list,
    "dict": dict,
}
