"""Randomness as a value: every draw is named by the path that leads to it.

`Rng(seed).child("batch", round, client)` is the same stream on every machine, in every order of
evaluation and with any number of workers, because it depends on nothing but its path. Nothing in
this package draws from a global generator.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedarena.core.options import LARGEST_INTEGER

if TYPE_CHECKING:
    import numpy as np
    import torch

LARGEST_SEED = LARGEST_INTEGER
"""The largest seed that a user may give."""
SECRET = 2**128
"""Seeds from here on come from a secret (`root`). A stream with such a seed gives away only the streams below it."""


def root(seed: int, secret: str = "") -> int:
    """The number in which all randomness of a trial roots: the seed, or a hash of secret and seed."""
    if not secret:
        return seed
    return SECRET + int.from_bytes(hashlib.blake2b(repr((secret, seed)).encode(), digest_size=16).digest(), "little")


def is_secret(text: str) -> bool:
    """Whether a text is a secret: 32 hexadecimal digits."""
    return re.fullmatch("[0-9a-f]{32}", text) is not None


@dataclass(frozen=True)
class Rng:
    """A node in the tree of random streams.

    Attributes:
        seed: the trial's seed; with a secret the node's own.
        path: names and numbers from the root to this node.
    """

    seed: int
    path: tuple[str | int, ...] = ()

    def child(self, *names: str | int) -> Rng:
        """The stream named by this node's path and `names`."""
        if self.seed < SECRET:
            return Rng(self.seed, (*self.path, *names))
        node = self
        for name in names:
            node = Rng(root(node.seed, repr(name)))
        return node

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
