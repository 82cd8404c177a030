"""What attacks that read observations without a search share: one after another, with labels in the order that fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import torch
from torch import Tensor

from fedarena.attacks.reconstruction.helpers.matching import relative_squares
from fedarena.attacks.reconstruction.helpers.output_labels import output_labels, shown
from fedarena.contracts.inference import Guess, Progress, Reconstruction
from fedarena.contracts.observation import Observation
from fedarena.contracts.view import View
from fedarena.core.threat import NotApplicable
from fedarena.problem.task import targets

REASONS = 3
"""The most reasons that are told."""


def read_each(
    view: View, read: Callable[[Observation, int], Reconstruction | str], progress: Progress
) -> Guess | NotApplicable:
    """A guess at each observation, grey where it cannot be read. If none can, the attack does not apply.

    Args:
        read: an observation and its number → the guess, or why there is none.
    """
    found: list[Reconstruction | str] = []
    for i, seen in enumerate(view.observations):
        result = read(seen, i)
        found.append(result)
        status = result if isinstance(result, str) else f"match {result.match:.1e}"
        progress((i + 1) / len(view.observations), f"round {seen.round}: {status}")
    reasons = [result for result in found if isinstance(result, str)]
    if len(reasons) == len(found):
        different = list(dict.fromkeys(reasons))
        more = f"; and {len(different) - REASONS} reasons more" if len(different) > REASONS else ""
        return NotApplicable("; ".join(different[:REASONS]) + more)
    pairs = zip(view.observations, found, strict=True)
    return [grey(view, seen) if isinstance(result, str) else result for seen, result in pairs]


def grey(view: View, seen: Observation) -> Reconstruction:
    """The guess for an observation that cannot be read."""
    like = next(iter(seen.target.values()))
    images = torch.full((seen.images, *view.input_shape), 0.5).to(like)
    return replace(matched_labels(view, seen, images), blind=seen.images)


def matched_labels(view: View, seen: Observation, x: Tensor, in_order: bool = True) -> Reconstruction:
    """Give samples the labels that the output layer shows, in the order that reproduces what was seen best.

    If it shows none, all classes are 0, and all numbers are ½.

    Args:
        in_order: whether the order is looked for.
    """
    n, distance, spent = seen.images, relative_squares(seen.target), 0
    labels = output_labels(view, seen, x[None]) if shown(view, seen) else torch.zeros(n, dtype=torch.int64).to(x.device)
    if not view.n_classes:
        labels = torch.full((n,), 0.5).to(x)

    def off(labels: Tensor) -> float:
        y = targets(labels, view.n_classes, x)
        return float(distance(seen.simulate(x.clamp(0, 1), y)))

    least, spent, better = off(labels), 1, in_order
    while better:
        better = False
        for i, j in combinations(range(n), 2):
            if labels[i] == labels[j]:
                continue
            swapped = labels.clone()
            swapped[[i, j]] = labels[[j, i]]
            spent += 1
            if (tried := off(swapped)) < least:
                labels, least, better = swapped, tried, True
    return Reconstruction(x, labels, least, spent)
