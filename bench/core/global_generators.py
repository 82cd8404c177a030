"""The global random generators of Python, NumPy and PyTorch.

This package draws from none of them. A user's code may: its draws then follow from a seed, so that equal configurations
give equal records, and the user's own draws go on afterwards as if nothing had been drawn.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from fedarena.core.rng import Rng


@contextmanager
def kept_generators() -> Iterator[None]:
    """Give the global generators their states back at the end."""
    python, arrays = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(arrays)


@contextmanager
def seeded_generators(seed: int) -> Iterator[None]:
    """What the block draws from the global generators follows from a seed of at most 63 bits."""
    with kept_generators():
        random.seed(seed)
        np.random.seed(seed % 2**32)
        torch.default_generator.manual_seed(seed)
        yield


@contextmanager
def generators_of(stream: Rng) -> Iterator[None]:
    """What a user's method draws from the global generators in the block follows from the stream that it is given."""
    with seeded_generators(stream.child("global generators").integer(63)):
        yield
