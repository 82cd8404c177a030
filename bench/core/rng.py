"""Randomness as a value: every draw is named by the path that leads to it.

`Rng(seed).child("batch", round, client)` is the same stream on every machine, in every order of
evaluation and with any number of workers, because it depends on nothing but its path. Nothing in
this package draws from a global generator.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import torch

LARGEST_SEED = 2**53 - 1
"""The largest seed that a user may give. Boards store seeds as JSON numbers, and a reader with double precision, such
as a browser, would round larger ones."""


@dataclass(frozen=True)
class Rng:
    """A node in the tree of random streams.

    Attributes:
        seed: the trial's seed.
        path: names and numbers from the root to this node.
    """

    seed: int
    path: tuple[str | int, ...] = ()

    def child(self, *names: str | int) -> Rng:
        """The stream named by this node's path and `names`."""
        return Rng(self.seed, (*self.path, *names))

    def integer(self, bits: int = 64) -> int:
        """A uniform integer of `bits` bits (at most 64): blake2b of seed and path."""
        text = repr((self.seed, self.path)).encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> (64 - bits)

    def torch(self) -> torch.Generator:
        """A fresh torch generator (CPU; draws are made there and moved, so devices agree)."""
        import torch

        return torch.Generator().manual_seed(self.integer(63))

    def numpy(self) -> np.random.Generator:
        """A fresh numpy generator (PCG64)."""
        import numpy as np

        return np.random.default_rng(self.integer())
