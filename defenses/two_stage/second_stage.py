"""Scores against the server's own gradient, added up over rounds (Xiang et al. 2023, Algorithm 3, lines 6 to 15).

    s_i = ⟨g_i, g_s⟩        μ = mean of the k largest s        s_i ← 0 where s_i < μ        S_i ← S_i + s_i

The k clients with the largest S are selected. Ties, such as between clients whose S is still zero, are broken by lot:
the paper leaves them open, and any fixed order would favour some clients.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fedarena.core.rng import Rng


def counted(scores: Tensor, k: int) -> Tensor:
    """The addition of a round to S [n]: its scores, with 0 for those below the mean of the k largest."""
    threshold = scores.topk(k).values.mean()
    return torch.where(scores < threshold, 0.0, scores)


def select(totals: Tensor, k: int, rng: Rng) -> Tensor:
    """Which clients have the k largest S: [n] bool."""
    lot = torch.randperm(len(totals), generator=rng.torch()).to(totals.device)
    best = lot[totals[lot].argsort(descending=True, stable=True)[:k]]
    chosen = torch.zeros(len(totals), dtype=torch.bool, device=totals.device)
    chosen[best] = True
    return chosen


def size(n: int, clients: int, assumed_corrupted: int, gamma: float | None, whole: bool) -> int:
    """k of n uploads: ⌈γn⌉, or ⌊γn⌋ where `whole`, at least one.

    Args:
        clients, assumed_corrupted: how many there are, and how many of them the server assumes to be corrupted;
            γ = 1 − assumed_corrupted/clients
            unless `gamma` is given.
    """
    if gamma is None:
        honest = n * (clients - assumed_corrupted)
        k = honest // clients if whole else -(-honest // clients)
    else:
        share = round(gamma * n, 9)  # 0.7·10 is no more than 7
        k = math.floor(share) if whole else math.ceil(share)
    return min(n, max(1, k))
