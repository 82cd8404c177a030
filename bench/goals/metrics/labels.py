"""Metrics of guessed labels, beside a guess that knows only how frequent each class is.

Samples of a batch have no order, so a guess is right for as many samples as it has labels in common with the truth,
counted with multiplicity. A client that draws its samples by chance may hold more than were to be named: then those
count that could have been, so that an answer that is right in all it was asked for scores 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fedarena.contracts.inference import Labels
from fedarena.core.binomial import share_ends


def label_metrics(
    answers: Sequence[Labels], truths: Sequence[Tensor], sizes: Sequence[int], readings: int = 1
) -> dict[str, float]:
    """The share of labels that were guessed right.

    Args:
        truths: the classes behind each observation.
        sizes: how many labels the attack had to guess for each; a client that draws its samples by chance may have
            fewer or more.
        readings: how many answers are judged, of which the best is shown.

    Returns:
        label_accuracy, the share of the labels that could be named and were; label_accuracy_low and
        label_accuracy_high, its 95 % interval over labels (`fedarena.core.binomial`); labels, how many there were.

    Raises:
        ValueError: there is not one answer per observation, or not the required number of labels.
    """
    if len(answers) != len(truths):
        raise ValueError(f"labels for {len(answers)} of {len(truths)} observations")
    for answer, size in zip(answers, sizes, strict=True):
        if answer.values.shape != (size,):
            raise ValueError(f"labels of shape {tuple(answer.values.shape)} for {size} samples")
    guesses = [a.values for a in answers]
    labels = _nameable(guesses, truths)
    accuracy = _in_common(guesses, truths) / max(1, labels)
    ends = share_ends("label_accuracy", accuracy, labels, readings)
    return {"label_accuracy": accuracy, **ends, "labels": float(labels)}


def prior_label_metrics(truths: Sequence[Tensor], sizes: Sequence[int], pool: Tensor) -> dict[str, float]:
    """`prior_label_accuracy`: the accuracy of a guess that knows only how frequent each class is.

    Args:
        pool: the classes of all training samples that are not the attacker's own.
    """
    shares = pool.bincount().double() / len(pool)
    guesses = [best_prior(n, shares) for n in sizes]
    return {"prior_label_accuracy": _in_common(guesses, truths) / max(1, _nameable(guesses, truths))}


def best_prior(n: int, shares: Tensor) -> Tensor:
    """The n labels that share most, on average, with n labels drawn with these frequencies: [n] (int64).

    A class that is named k times scores min(k, N_c) with N_c binomial, so that its k-th naming adds P(N_c ≥ k), less
    each time. The n largest of these gains are taken. For n = 1 it is the most frequent class.
    """
    from scipy.special import bdtrc  # scipy.stats takes half a second to import

    gains = torch.from_numpy(bdtrc(torch.arange(n)[:, None].numpy(), n, shares.cpu().numpy()[None]))
    return gains.flatten().argsort(descending=True, stable=True)[:n] % len(shares)


def _in_common(guesses: Sequence[Tensor], truths: Sequence[Tensor]) -> int:
    """How many of the true labels were named."""
    return sum(
        min(int((guess == c).sum()), int((truth == c).sum()))
        for guess, truth in zip(guesses, truths, strict=True)
        for c in truth.unique().tolist()
    )


def _nameable(guesses: Sequence[Tensor], truths: Sequence[Tensor]) -> int:
    """How many true labels there are, of each observation no more than were to be guessed."""
    return sum(min(len(guess), len(truth)) for guess, truth in zip(guesses, truths, strict=True))
