"""FLAME (Nguyen et al. 2022, Algorithm 1): clusters of directions, clipping to the median norm, and noise.

1. HDBSCAN on the cosine distances 1 − cos(x_i, x_j), for clusters of more than half of the rows; L: its members
2. S = median of all norms ‖x_i‖
3. (1/|L|) Σ_{i ∈ L} x_i min(1, S/‖x_i‖) + N(0, (λS)² I)
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Aggregator, Call, require
from fedarena.defenses.aggregators.cards.flame import Options
from fedarena.defenses.aggregators.geometry import Matrix, by_content, distances
from fedarena.defenses.aggregators.lengths import TINY, clipping, directions, lengths, median

ALIKE = 1e-12
"""Cosine distances up to this are rounding and count as 0."""


class Flame(Aggregator):
    """The rule does not use f. `used`: min(1, S/‖x_i‖)/|L| for the rows of L, without the noise; `votes`: 1/|L|."""

    options: Options

    def check(self, n: int, f: int) -> None:
        require(n >= 2 * f + 1, "flame", n, f, "2f + 1 uploads or more")

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        norms = lengths(x)
        bound = median(norms)
        sizes = norms.cpu().numpy()
        order = sizes.argsort() if len(np.unique(sizes)) == len(x) else by_content(x)  # of the rows, not their places
        kept = np.empty(len(x), dtype=np.bool_)
        # Sorted before distances are computed: their last digits, which decide ties, depend on the place of a row.
        rows = torch.from_numpy(order.copy()).to(x.device)
        kept[order] = majority(cosine_distances(x[rows], norms[rows]), self.options.min_samples)
        votes = torch.from_numpy(kept / kept.sum()).to(x)
        used = votes * clipping(norms, bound).to(x)
        noise = torch.randn(x.shape[1], generator=call.rng.child("noise").torch()).to(x)
        return Aggregate(used @ x + (self.options.noise * bound).to(x) * noise, used, votes=votes)


def cosine_distances(x: Tensor, norms: Tensor) -> Matrix:
    """[n, d] → [n, n]: 1 − cos of the rows, 0 for equal ones; 1 from a row without a direction to any other one.

    Rows of zeros have no direction, and nor have those that a diverging model makes overflow.
    """
    found: Matrix = np.nan_to_num(distances(directions(x, norms)).squared / 2, nan=1.0)
    found[found <= ALIKE] = 0
    nowhere = (norms <= TINY).cpu().numpy()
    found[nowhere[:, None] != nowhere[None]] = 1
    return found


def majority(distances: Matrix, min_samples: int) -> npt.NDArray[np.bool_]:
    """[n, n] → [n]: the members of the one cluster of ⌊n/2⌋ + 1 rows or more; all rows if there is none.

    Args:
        min_samples: which neighbour's distance is the core distance, 1 for the nearest one; scikit-learn counts the
            row itself, too.
    """
    n = len(distances)
    if n <= 2:
        return np.ones(n, dtype=np.bool_)
    from sklearn.cluster import HDBSCAN  # slow to import, and only needed here

    found = HDBSCAN(
        min_cluster_size=n // 2 + 1,
        min_samples=min(min_samples + 1, n),
        metric="precomputed",
        allow_single_cluster=True,
        copy=True,
    ).fit(distances)
    members: npt.NDArray[np.bool_] = found.labels_ == 0
    return members if members.any() else ~members
