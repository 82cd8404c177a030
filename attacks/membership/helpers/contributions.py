"""What each candidate alone would have given, for all candidates at once."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.func import vmap

from fedarena.contracts.observation import Candidates, Observation
from fedarena.core.tensors import flatten, same_names
from fedarena.problem.task import targets

NUMBERS_AT_ONCE = 1 << 20
"""About how many numbers are computed together. Protocols that clip have a gradient for each sample, and more of them
leave the processor's cache: against DP-SGD 16 times as many take twice as long."""


def asked_about(seen: Observation, candidates: Candidates) -> Tensor:
    """Which candidates are asked about a client that is behind the observation, [m] (bool)."""
    assert candidates.clients is not None, "candidates of a client's data set name the client"
    return torch.isin(candidates.clients, torch.tensor(seen.clients, device=candidates.clients.device))


def contributions(seen: Observation, candidates: Candidates, which: Tensor, n_classes: int) -> Tensor:
    """a(x) of some candidates: what a batch of nothing but the candidate would have given, [n, d] (float64).

    A simulator takes as many samples as there are behind the observation, so it gets that many copies of the candidate;
    the mean over copies is the candidate's own.

    Args:
        which: their indices [n] (int64).
    """
    names = tuple(seen.target)
    x, y = candidates.x[which], candidates.y[which]
    labels = targets(y, n_classes, x)

    def alone(one: Tensor, label: Tensor) -> Tensor:
        copies = one.expand(seen.images, *one.shape), label.expand(seen.images, *label.shape)
        return flatten(same_names(seen.simulate(*copies), names))

    size = seen.images * sum(t.numel() for t in seen.target.values())
    at_once = min(64, max(4, NUMBERS_AT_ONCE // max(1, size)))
    with torch.no_grad():
        own: Tensor = vmap(alone, chunk_size=at_once, randomness="same")(x, labels)
    return own.double()
