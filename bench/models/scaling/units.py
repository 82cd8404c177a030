"""Numbers of hidden units, and which of them share one factor."""

from __future__ import annotations

import torch
from torch import Tensor

from fedarena.core.errors import UserError

FIXED = 0
"""The number for entries that no factor scales: the network's input, its output, constants."""


class Units:
    """Units 1, 2, … in the order in which layers write them, some of them tied.

    Attributes:
        table: for every number, FIXED included, the least of those that it is tied to; int64 [units + 1].
    """

    def __init__(self) -> None:
        self.table = torch.tensor([FIXED])
        self._layer = [""]

    def new(self, count: int, layer: str) -> Tensor:
        """Numbers for the output channels of a layer [count]."""
        numbers = torch.arange(len(self.table), len(self.table) + count)
        self.table = torch.cat([self.table, numbers])
        self._layer += [layer] * count
        return numbers

    def tie(self, a: Tensor, b: Tensor, where: str) -> None:
        """Unit a_i and unit b_i share a factor from now on, for every i.

        Args:
            where: the operation that demands it, for the error.

        Raises:
            UserError: one of the two is FIXED and the other is not.
        """
        for pair in torch.stack([a.flatten(), b.flatten()]).unique(dim=1).T:
            low, high = sorted(self.table[pair].tolist())
            if low == FIXED != high:
                raise UserError(
                    f"{where} ties the channels of layer '{self._layer[high]}' to the network's input or a constant, "
                    "which no mask scales, allowed: additions of hidden layers"
                )
            self.table[self.table == high] = low

    def fix(self, numbers: Tensor) -> bool:
        """Give units, and all that are tied to them, the factor 1. Return whether they were tied to no other units."""
        tied = self.table[numbers].unique()
        concerned = torch.isin(self.table, tied)
        self.table[concerned] = FIXED
        return int(concerned.sum()) == len(numbers) == len(tied)
