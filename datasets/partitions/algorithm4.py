"""Label skew in equal shards: Algorithm 4 of the two-stage DP and Byzantine paper (Xiang et al. 2023)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedarena.core.options import NoOptions
from fedarena.datasets.dataset import Labels, Shards, check_classes, check_clients


def split(labels: Labels, n_clients: int, rng: np.random.Generator, options: NoOptions) -> Shards:
    """Share out each class in random proportions, put the workers' parts in a row, and cut equal shards.

        for each class k:   V ~ U(0, 1)^n, V ← V/ΣV; worker i's pile T_i gets the share V_i of the class
        L = T_1, T_2, …, T_n one after the other; D_i = the i-th of n equal parts of L

    Raises:
        UserError: numbers in place of classes, or fewer samples than clients.
    """
    check_classes(labels, "algorithm4")
    check_clients(labels, n_clients)
    piles: list[list[npt.NDArray[np.int64]]] = [[] for _ in range(n_clients)]
    for k in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == k))
        shares = rng.random(n_clients)
        ends = np.rint(np.cumsum(shares) / shares.sum() * len(members)).astype(np.int64)[:-1]
        for pile, part in zip(piles, np.split(members, ends), strict=True):
            pile.append(part)
    row = np.concatenate([part for pile in piles for part in pile])
    return [rng.permutation(shard) for shard in np.array_split(row, n_clients)]
