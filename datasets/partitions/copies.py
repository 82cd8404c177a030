"""Every client holds the same samples, as in PBPFL's released code, by an error, with three clients or more."""

from __future__ import annotations

import numpy as np

from fedarena.core.options import NoOptions
from fedarena.datasets.dataset import Labels, Shards, check_clients


def split(labels: Labels, n_clients: int, rng: np.random.Generator, options: NoOptions) -> Shards:
    """The first ⌊N/n⌋ of a random permutation of the N samples, once for each of n clients; no client holds the rest.

    Raises:
        UserError: fewer samples than clients.
    """
    check_clients(labels, n_clients)
    shared = rng.permutation(len(labels))[: len(labels) // n_clients]
    return [shared.copy() for _ in range(n_clients)]
