"""Label skew by similarity: a share of the data is alike for all clients, the rest is sorted by class.

γ·N samples       a random permutation, cut into equal blocks
(1 − γ)·N samples sorted by class, cut into equal blocks of neighbours; client c gets block c of each
"""

from __future__ import annotations

import numpy as np

from fedarena.datasets.dataset import Labels, Shards, check_classes, check_clients
from fedarena.datasets.partitions.cards import SimilarityOptions


def split(labels: Labels, n_clients: int, rng: np.random.Generator, options: SimilarityOptions) -> Shards:
    """Share out γ·N random samples evenly, and the others in blocks of sorted classes.

    Raises:
        UserError: numbers in place of classes, or fewer samples than clients.
    """
    return blocks(labels, n_clients, rng, "similarity", options.share)


def blocks(labels: Labels, n_clients: int, rng: np.random.Generator, name: str, share: float) -> Shards:
    """The shards with γ = `share`; their sizes differ by two at most. Raises UserError as `split` does.

    Args:
        name: the partition's, for messages.
    """
    check_classes(labels, name)
    check_clients(labels, n_clients)
    order = rng.permutation(len(labels))
    alike, others = np.split(order, [round(share * len(labels))])
    # A stable sort of a permutation: samples of a class are in random order.
    others = others[np.argsort(labels[others], kind="stable")]
    parts = zip(np.array_split(alike, n_clients), np.array_split(others, n_clients), strict=True)
    return [rng.permutation(np.concatenate(pair)) for pair in parts]
