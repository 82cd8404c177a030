"""What each candidate alone would have given, for all candidates at once."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import vmap

from fedarena.contracts.observation import Candidates, Observation
from fedarena.core.tensors import flatten, same_names

AT_ONCE = 4
"""How many candidates are computed together. Gradients of single samples, which are clipped, leave the processor's
cache with more: 64 take twice as long against DP-SGD, and save no time elsewhere."""


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
    labels = F.one_hot(y, n_classes).to(x) if n_classes else y

    def alone(one: Tensor, label: Tensor) -> Tensor:
        copies = one.expand(seen.images, *one.shape), label.expand(seen.images, *label.shape)
        return flatten(same_names(seen.simulate(*copies), names))

    with torch.no_grad():
        own: Tensor = vmap(alone, chunk_size=AT_ONCE, randomness="same")(x, labels)
    return own.double()
