"""What an upload says whose protocol leaves entries out: its other entries, and nothing of those."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from fedarena.contracts.observation import Simulator
from fedarena.core.tensors import Tensors


@dataclass(frozen=True)
class KeptEntries:
    """Simulator: what a candidate batch would have sent, in the entries that were sent; 0 in the others.

    Attributes:
        whole: gives all entries. kept: 1 for an entry that was sent and 0 for another, like the upload.
    """

    whole: Simulator
    kept: Tensors

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        return {name: t * self.kept[name] for name, t in self.whole(x, y).items()}


def without_gaps(simulate: Simulator) -> tuple[Simulator, Tensors | None]:
    """A simulator of all entries, and which of them were sent; None: all."""
    return (simulate.whole, simulate.kept) if isinstance(simulate, KeptEntries) else (simulate, None)
