"""SignGuard (Xu et al. 2022, the plain variant).

M = median of the norms
S1: rows with low·M ≤ ‖x_i‖ ≤ high·M
S2: the largest cluster (mean shift) of the rows' shares of positive, zero and negative values among some
    coordinates drawn at random
(1/|S|) Σ_{i ∈ S} x_i min(1, M/‖x_i‖),  S = S1 ∩ S2
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Aggregator, Call, require
from fedarena.defenses.aggregators.cards.signguard import Options
from fedarena.defenses.aggregators.geometry import Matrix
from fedarena.defenses.aggregators.lengths import clipping, lengths, median

ALIKE = 1e-6
"""Bandwidths below count as 0; scikit-learn's distance of a row to itself is up to some 1e-8."""


class SignGuard(Aggregator):
    """The rule does not use f. `used`: min(1, M/‖x_i‖)/|S| for the rows of S."""

    options: Options

    def check(self, n: int, f: int) -> None:
        require(n >= 2 * f + 1, "signguard", n, f, "2f + 1 uploads or more")

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        norms = lengths(x)
        bound = median(norms)
        plausible = (norms >= self.options.low * bound) & (norms <= self.options.high * bound)
        d = x.shape[1]
        drawn = torch.randperm(d, generator=call.rng.child("coordinates").torch())[
            : max(1, int(d * self.options.share))
        ]
        alike = torch.from_numpy(largest_cluster(sign_shares(x[:, drawn.to(x.device)]))).to(x.device)
        trusted = plausible & alike
        if not trusted.any():  # the paper leaves this open; the median guarantees that some row is in S1
            trusted = plausible
        votes = (trusted / trusted.sum()).to(x)
        used = votes * clipping(norms, bound).to(x)
        return Aggregate(used @ x, used, votes=votes)


def sign_shares(x: Tensor) -> Matrix:
    """[n, b] → [n, 3]: shares of positive, zero and negative values, each over the largest of its column."""
    counts = torch.stack([(x > 0).sum(1), (x == 0).sum(1), (x < 0).sum(1)], dim=1).double()
    shares: Matrix = (counts / counts.amax(0).clamp(min=1)).cpu().numpy()
    return shares


def largest_cluster(features: Matrix) -> np.typing.NDArray[np.bool_]:
    """[n, 3] → [n]: the rows of the largest cluster that mean shift finds.

    All rows when the bandwidth, the mean distance to the ⌊n/2⌋-th neighbour counting oneself, is 0 up to rounding:
    then most rows are equal, or there are fewer than four.
    """
    from sklearn.cluster import MeanShift, estimate_bandwidth  # slow to import, and only needed here

    # In an order that depends on the rows alone: sums round differently in another order, and some rows are just one
    # bandwidth apart.
    order = np.lexsort(features.T)
    features = features[order]
    bandwidth = estimate_bandwidth(features, quantile=0.5)
    if bandwidth < ALIKE:
        return np.ones(len(features), dtype=np.bool_)
    # The seeds of bin_seeding=True, one for each bin, without its warning if no two rows share a bin.
    bins = np.unique(np.round(features / bandwidth), axis=0)
    seeds = bandwidth * bins if len(bins) < len(features) else features
    labels = MeanShift(bandwidth=bandwidth, seeds=seeds, cluster_all=False).fit(features).labels_
    members = np.empty(len(features), dtype=np.bool_)
    members[order] = labels == np.bincount(labels[labels >= 0]).argmax()
    return members
