"""What each candidate alone would have given, for all candidates at once."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import vmap

from fedarena.contracts.observation import Candidates, Observation
from fedarena.contracts.simulators import PlainGradient
from fedarena.core.gradients import gradient
from fedarena.core.tensors import flatten, same_names
from fedarena.problem.task import targets

NUMBERS_AT_ONCE = 1 << 20
"""About how many numbers are computed together. Protocols that clip have a gradient for each sample, and more of them
leave the processor's cache: against DP-SGD 16 times as many take twice as long."""
NUMBERS_HELD = 1 << 21
"""About how many numbers of contributions a comparison holds at once: 16 MB."""
NO_MODEL = "what was seen of some uploads leads to no model whose loss could be taken"
"""Why a statistic by loss gives no result."""


def asked_about(seen: Observation, candidates: Candidates) -> Tensor:
    """Which candidates are asked about a client that is behind the observation, [m] (bool)."""
    assert candidates.clients is not None, "candidates of a client's data set name the client"
    return torch.isin(candidates.clients, torch.tensor(seen.clients, device=candidates.clients.device))


def contributions(seen: Observation, candidates: Candidates, which: Tensor, n_classes: int) -> Tensor:
    """a(x) of some candidates: what a batch of nothing but the candidate would have given, [n, d] (float64).

    A simulator takes as many samples as there are behind the observation, so it gets that many copies of the candidate;
    the mean over copies is the candidate's own. A plain gradient is computed of one copy, which gives the same.

    Args:
        which: their indices [n] (int64).
    """
    names, plain = tuple(seen.target), seen.simulate if isinstance(seen.simulate, PlainGradient) else None
    images = seen.images if plain is None else 1
    x, y = candidates.x[which], candidates.y[which]
    labels = targets(y, n_classes, x)

    def alone(one: Tensor, label: Tensor) -> Tensor:
        x, y = one.expand(images, *one.shape), label.expand(images, *label.shape)
        given = seen.simulate(x, y) if plain is None else gradient(plain.task.loss, plain.params, x, y)
        return flatten(same_names(given, names))

    size = images * sum(t.numel() for t in seen.target.values())
    at_once = min(64, max(4, NUMBERS_AT_ONCE // max(1, size)))
    with torch.no_grad():
        own: Tensor = vmap(alone, chunk_size=at_once, randomness="same")(x, labels)
    return own.double()


def compared(
    seen: Observation,
    candidates: Candidates,
    which: Tensor,
    n_classes: int,
    measure: Callable[[Tensor, Tensor], Tensor],
) -> Tensor:
    """How contributions compare with what was seen, [n] (float64).

    Args:
        which: the candidates' indices [n] (int64).
        measure: of contributions [k, d] and what was seen [d], k numbers.
    """
    target = flatten(seen.target).double()
    parts = which.split(max(64, NUMBERS_HELD // len(target)))
    return torch.cat([measure(contributions(seen, candidates, part, n_classes), target) for part in parts])


def cosines(own: Tensor, target: Tensor) -> Tensor:
    """Of contributions [k, d] with what was seen [d]; 0, no evidence, where either vector is zero."""
    lengths = own.norm(dim=1) * target.norm()
    return torch.where(lengths > 0, own @ target / lengths, 0.0)


def differences(own: Tensor, target: Tensor) -> Tensor:
    """‖v‖² − ‖v − a‖² of contributions a [k, d] and what was seen v [d]."""
    return 2 * (own @ target) - own.square().sum(1)


def minus_losses(seen: Observation, candidates: Candidates, which: Tensor) -> Tensor:
    """−L(W_tc; x) of some candidates, [n] (float64), with W_tc the model that the upload led to.

    Args:
        which: their indices [n] (int64).
    """
    assert seen.left is not None, "the attack asks for models, and gives up where there is none"
    return -seen.left.losses(candidates.x[which], candidates.y[which])
