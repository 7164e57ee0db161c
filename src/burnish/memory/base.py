"""A memory looks at every batch; its attributes are its state."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..types.table import Rollouts


class Memory:
    """Declared as a field of a method. Where `value` is not None, parts may read it as the column of the field's name."""

    def observe(self, batch: Rollouts) -> None:
        """Look at a batch after its update."""

    def value(self) -> float | None:
        """What parts read, the same for every row."""
        return None

    def state(self) -> dict[str, Any]:
        """All that a resume needs: plain values and tensors."""
        return copy.deepcopy(self.__dict__)

    def load_state(self, state: dict[str, Any]) -> None:
        """The inverse of `state`."""
        self.__dict__.update(copy.deepcopy(state))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v in self.__dict__.items())})"


class Ledger(Memory):
    """Accounts of what was spent: sampled steps, trained steps, episodes, feedback queries per judge."""

    def __init__(self) -> None:
        self.accounts: dict[str, int] = {}

    def add(self, account: str, amount: int) -> None:
        """Book an amount."""
        self.accounts[account] = self.accounts.get(account, 0) + amount
