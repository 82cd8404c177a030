"""Gradients that are added to what clients kept of earlier rounds, in the same pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from fedarena.core.tensors import Tensors


@dataclass(frozen=True)
class Onto:
    """FedSGD's uploads become keeps·before_c + adds·g_c, for client c with gradient g_c.

    Attributes:
        before: stacked over the clients; None: zeros.
    """

    before: Tensors | None
    keeps: float
    adds: float

    def of(self, clients: Sequence[int]) -> Onto:
        """The same for some of the clients, by position."""
        if self.before is None or list(clients) == list(range(len(next(iter(self.before.values()))))):
            return self
        index = torch.tensor(clients)
        return Onto({name: t[index.to(t.device)] for name, t in self.before.items()}, self.keeps, self.adds)

    def fill(self, ups: Tensors, first: int) -> None:
        """Overwrite the uploads of the clients from `first` on by keeps·before, to which adds·g is yet to be added."""
        for name, up in ups.items():
            if self.before is None:
                up.zero_()
            else:
                torch.mul(self.before[name][first : first + len(up)], self.keeps, out=up)

    def add(self, gradients: Tensors) -> None:
        """Overwrite all clients' gradients by their uploads."""
        for name, g in gradients.items():
            g.mul_(self.adds)
            if self.before is not None:
                g.add_(self.before[name], alpha=self.keeps)
