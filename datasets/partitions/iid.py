"""The uniform partition."""

from __future__ import annotations

import numpy as np

from fedarena.core.options import NoOptions
from fedarena.datasets.dataset import Labels, Shards, check_clients


def split(labels: Labels, n_clients: int, rng: np.random.Generator, options: NoOptions) -> Shards:
    """Cut a random permutation of the N samples into shards whose sizes differ by at most one.

    Raises:
        UserError: fewer samples than clients.
    """
    check_clients(labels, n_clients)
    return np.array_split(rng.permutation(len(labels)), n_clients)
