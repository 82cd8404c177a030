"""Metrics of guesses at which client holds a sample, beside guesses that read no upload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from fedarena.core.binomial import share_ends


def source_metrics(named: Tensor, holders: Tensor, readings: int = 1) -> dict[str, float]:
    """The share of samples whose holder was named.

    Args:
        named: the client named for each sample, [m] (int64). holders: the client that holds it, [m] (int64).
        readings: how many answers are judged, of which the best is shown.

    Returns:
        source_accuracy, the share; source_accuracy_low and source_accuracy_high, its 95 % interval over samples
        (`fedarena.core.binomial`); samples, how many there were.

    Raises:
        ValueError: there is not one name per sample, or there is no sample.
    """
    if named.shape != holders.shape or not len(holders):
        raise ValueError(f"names of shape {tuple(named.shape)} for {len(holders)} samples")
    accuracy = float((named.cpu() == holders.cpu()).double().mean())
    ends = share_ends("source_accuracy", accuracy, len(holders), readings)
    return {"source_accuracy": accuracy, **ends, "samples": float(len(holders))}


def prior_source_metrics(holders: Tensor, classes: Tensor | None, held: Mapping[int, Tensor]) -> dict[str, float]:
    """What guesses reach that read no upload.

    Args:
        holders, classes: of each sample, [m] (int64); no classes where labels are numbers.
        held: client → the classes of all its samples.

    Returns:
        prior_source_accuracy, that of naming any client; class_source_accuracy, that of naming the client among whose
        samples the sample's class has the largest share. Nobody but the clients knows these shares.
    """
    clients = sorted(held)
    prior = 1 / len(clients)
    by_class = prior if classes is None else _by_class(holders, classes, clients, held)
    return {"prior_source_accuracy": prior, "class_source_accuracy": by_class}


def _by_class(holders: Tensor, classes: Tensor, clients: Sequence[int], held: Mapping[int, Tensor]) -> float:
    """The accuracy of naming the client with the largest share of a sample's class; of several, any."""
    kinds = 1 + int(max(int(y.max()) for y in (*held.values(), classes)))
    shares = torch.stack([held[c].cpu().bincount(minlength=kinds).double() / len(held[c]) for c in clients])
    best = (shares == shares.max(0).values).double()
    place = {client: i for i, client in enumerate(clients)}
    rows = torch.tensor([place[int(c)] for c in holders])
    return float((best / best.sum(0))[rows, classes.cpu()].mean())
