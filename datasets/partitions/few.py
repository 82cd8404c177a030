"""The uniform partition of a small part of the data."""

from __future__ import annotations

import numpy as np

from fedarena.datasets.dataset import Labels, Shards, check_clients
from fedarena.datasets.partitions.cards import FewOptions


def split(labels: Labels, n_clients: int, rng: np.random.Generator, options: FewOptions) -> Shards:
    """The first n·s of a random permutation of the N samples, s for each of n clients; no client holds the rest.

    Raises:
        UserError: fewer than n·s samples.
    """
    check_clients(labels, n_clients, options.samples, "samples")
    return np.split(rng.permutation(len(labels))[: n_clients * options.samples], n_clients)
