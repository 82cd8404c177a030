"""Label skew by Dirichlet(α) (Hsu et al. 2019, in the form of Yurochkin et al. 2019).

For each class k, q ~ Dir_n(α); client c gets the share q_c of the class's samples. When `balanced`, class after class,
q_c is 0 for a client that holds more than N/n samples already, and the others' shares are scaled up to sum to 1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedarena.core.errors import UserError
from fedarena.datasets.dataset import Labels, Shards, check_classes, check_clients
from fedarena.datasets.partitions.cards import DirichletOptions

DRAWS = 1000


def split(labels: Labels, n_clients: int, rng: np.random.Generator, options: DirichletOptions) -> Shards:
    """Share out each class by its own draw of Dirichlet(α); sizes are unequal.

    Raises:
        UserError: numbers in place of classes, too few samples, or no draw of `DRAWS` that gives each client
            `min_size` samples.
    """
    check_classes(labels, "dirichlet")
    check_clients(labels, n_clients, options.min_size, "min_size")
    classes, sizes = np.unique(labels, return_counts=True)
    for _ in range(DRAWS):
        cuts, counts = [], np.zeros(n_clients, np.int64)
        for size in sizes:
            closed = counts > len(labels) / n_clients if options.balanced else np.zeros(n_clients, np.bool_)
            cuts.append(_cuts(int(size), closed, options.alpha, rng))
            counts += np.diff(cuts[-1])
        if np.min(counts) >= options.min_size:
            break
    else:
        raise UserError(
            f"partition dirichlet: option 'alpha' is {options.alpha:g}, and none of {DRAWS} draws gave each of "
            f"{n_clients} clients {options.min_size} or more of {len(labels)} samples: raise alpha, or lower "
            "clients or min_size"
        )
    shards: list[list[npt.NDArray[np.int64]]] = [[] for _ in range(n_clients)]
    for k, cut in zip(classes, cuts, strict=True):
        members = rng.permutation(np.flatnonzero(labels == k))
        for shard, start, stop in zip(shards, cut[:-1], cut[1:], strict=True):
            shard.append(members[start:stop])
    return [rng.permutation(np.concatenate(parts)) for parts in shards]


def _cuts(size: int, closed: npt.NDArray[np.bool_], alpha: float, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """0 = t_0 ≤ t_1 ≤ … ≤ t_n = size, with t_c − t_{c−1} ≈ q_c·size and q ~ Dir_n(α), where 0 for `closed` clients.

    Where the shares of all others underflow to 0, all of them get the same.
    """
    drawn = rng.dirichlet(np.full(len(closed), alpha))
    shares = np.where(closed, 0.0, drawn)
    if closed.any() and not shares.sum():
        shares = (~closed).astype(np.float64)
    total = shares.sum()
    if not (np.isfinite(total) and total > 0):  # Gamma(α) overflows where α comes near the largest float
        raise UserError(f"partition dirichlet: option 'alpha' is {alpha:g}, allowed: small enough to draw from")
    ends = np.rint(np.cumsum(shares) / total * size).astype(np.int64)
    ends[-1] = size
    return np.concatenate([np.zeros(1, np.int64), ends])
