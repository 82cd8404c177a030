"""What a model is worth to each honest client, on held-out data with the client's own mix of classes.

    accuracy of client c = Σ_k n_ck a_k / Σ_k n_ck,  k over the classes of the held-out data

n_ck is how many of the client's training samples are of class k, and a_k the share of the held-out samples of class k
that the model gets right. So the held-out data are weighted by the client's shares of labels. A client whose classes
are not among the held-out ones has no such accuracy and is left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from fedarena.problem.problem import Problem

DECILE = 0.1
"""The lowest decile is the quantile of this share of the clients, interpolated linearly."""


def accuracies(problem: Problem, by_class: Sequence[float]) -> Tensor:
    """The accuracy of each client that is not corrupted when the federation is attacked, in float64.

    Args:
        by_class: a_k; NaN for a class without held-out samples.
    """
    a = torch.tensor(by_class, dtype=torch.float64)
    known = ~a.isnan()
    honest = [c for c in range(len(problem.shards)) if c not in problem.corrupted]
    counts = torch.stack([problem.y[problem.shards[c]].bincount(minlength=len(a)).cpu() for c in honest])
    counts = counts[:, known].double()
    counts = counts[counts.sum(1) > 0]
    return counts @ a[known] / counts.sum(1)


def mean_and_lowest_decile(problem: Problem, by_class: Sequence[float]) -> tuple[float, float] | None:
    """Over the honest clients; None where labels are numbers, or no client has an accuracy."""
    if not by_class or all(map(math.isnan, by_class)):
        return None
    each = accuracies(problem, by_class)
    return (float(each.mean()), float(each.quantile(DECILE))) if len(each) else None
