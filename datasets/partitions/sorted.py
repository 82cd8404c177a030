"""The hardest label skew: samples sorted by class and cut into equal blocks of neighbours, one for each client."""

from __future__ import annotations

import numpy as np

from fedarena.core.options import NoOptions
from fedarena.datasets.dataset import Labels, Shards
from fedarena.datasets.partitions.similarity import blocks


def split(labels: Labels, n_clients: int, rng: np.random.Generator, options: NoOptions) -> Shards:
    """Client c gets block c. Raises UserError for numbers in place of classes, or fewer samples than clients."""
    return blocks(labels, n_clients, rng, "sorted", 0.0)
