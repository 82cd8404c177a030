"""Label skew of McMahan et al. (2017): the samples, sorted by class, are cut into n·c shards, and each client gets c.

Which shards a client gets is drawn at random, and so is the order within a class.
"""

from __future__ import annotations

import numpy as np

from fedarena.datasets.dataset import Labels, Shards, check_classes, check_clients
from fedarena.datasets.partitions.cards import PathologicalOptions


def split(labels: Labels, n_clients: int, rng: np.random.Generator, options: PathologicalOptions) -> Shards:
    """Each client's samples, in random order; sizes differ by c at most.

    Raises:
        UserError: numbers in place of classes, fewer samples than clients, or than shards.
    """
    check_classes(labels, "pathological")
    check_clients(labels, n_clients, options.classes, "classes")
    order = rng.permutation(len(labels))
    # A stable sort of a permutation: samples of a class are in random order.
    shards = np.array_split(order[np.argsort(labels[order], kind="stable")], n_clients * options.classes)
    drawn = rng.permutation(len(shards)).reshape(n_clients, options.classes)
    return [rng.permutation(np.concatenate([shards[s] for s in own])) for own in drawn]
