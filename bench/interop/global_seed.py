"""Libraries that draw from the global generators follow the seed of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from fedarena.core.rng import Rng


@contextmanager
def global_seed(rng: Rng) -> Iterator[None]:
    """Seed the global generators of torch and numpy, from which some libraries draw, and put them back afterwards."""
    before = np.random.get_state()
    with torch.random.fork_rng():
        torch.manual_seed(rng.integer(63))
        np.random.seed(rng.integer(32))
        try:
            yield
        finally:
            np.random.set_state(before)
