"""Metrics of membership scores: how well they rank members above outsiders."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from fedarena.contracts.inference import Scores
from fedarena.core.binomial import TAIL, binomial_interval, kinds_of_interval
from fedarena.goals.metrics.auc_interval import AucEstimate, auc_interval, estimate_auc

RATES = {"tpr_at_1_percent_fpr": 0.01, "tpr_at_0.1_percent_fpr": 0.001}
"""False positive rates at which the share of members found is measured."""


def membership_metrics(
    answers: Sequence[Scores],
    members: Sequence[Tensor],
    grouped: bool = True,
    readings: int = 1,
    chance: float = 0.5,
) -> dict[str, float]:
    """How well the scores separate members from outsiders, over the candidates of all observations together.

    Args:
        answers: scores [m] per observation, which are not normalised.
        members: which candidates of each observation are members, [m] (bool).
        grouped: whether candidates of one observation are alike, so that they are worth fewer independent ones.
        readings: how many rankings are judged, of which the best is shown.
        chance: c, the AUC without any upload.

    Returns:
        auc, the probability that a member outranks an outsider (a tie counts one half; 0.5 is chance); auc_low and
        auc_high, its 95 % interval (`fedarena.goals.metrics.auc_interval.auc_interval`); advantage = (auc − c)/(1 − c);
        the true positive rate at a false positive rate of 1 % and of 0.1 %, where one outsider is no more than that;
        its 95 % interval as NAME_low and NAME_high (`true_positive_interval`); for several readings NAME_low_together
        and NAME_high_together, which hold for all of them at once (Bonferroni); candidates, the number judged.

    Raises:
        ValueError: there is not one answer per observation or one score per candidate, or there are no candidates.
    """
    pairs = _pairs(answers, members)
    inside, outside = [ranked(v[m]) for v, m in pairs], [ranked(v[~m]) for v, m in pairs]
    positives, negatives = torch.cat(inside), torch.cat(outside)
    if not len(positives) or not len(negatives):
        raise ValueError("no candidates to judge")
    estimate = estimate_auc(inside, outside, grouped)
    metrics = {"auc": estimate.auc, "advantage": (estimate.auc - chance) / (1 - chance)}
    metrics["candidates"] = float(len(positives) + len(negatives))
    for kind, together in kinds_of_interval(readings):
        metrics[f"auc_low{kind}"], metrics[f"auc_high{kind}"] = auc_interval(estimate, together)
    return metrics | _true_positive_rates(positives, negatives, estimate, readings)


def _pairs(answers: Sequence[Scores], members: Sequence[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """Scores (float64) and which candidates are members, by observation. Raises ValueError where they do not match."""
    if len(answers) != len(members):
        raise ValueError(f"scores for {len(answers)} of {len(members)} observations")
    for answer, truth in zip(answers, members, strict=True):
        if answer.values.shape != truth.shape:
            raise ValueError(f"scores of shape {tuple(answer.values.shape)} for {len(truth)} candidates")
    return [(a.values.double().cpu(), m.cpu()) for a, m in zip(answers, members, strict=True)]


def _true_positive_rates(
    positives: Tensor, negatives: Tensor, estimate: AucEstimate, readings: int
) -> dict[str, float]:
    """The share of members found at each of `RATES` at which there is an outsider to count, with its interval."""
    metrics: dict[str, float] = {}
    for name, rate in RATES.items():
        allowed = false_positives(rate, len(negatives))
        if not allowed:
            continue
        metrics[name] = float((positives > negatives.sort(descending=True).values[allowed]).double().mean())
        for kind, together in kinds_of_interval(readings):
            low, high = true_positive_interval(positives, negatives, rate, estimate, together)
            metrics |= {f"{name}_low{kind}": low, f"{name}_high{kind}": high}
    return metrics


def true_positive_interval(
    positives: Tensor, negatives: Tensor, rate: float, estimate: AucEstimate, together: int = 1
) -> tuple[float, float]:
    """The 95 % interval of the true positive rate at a false positive rate.

    It covers the share of all members above the threshold that the share `rate` of all outsiders exceeds. Both the
    members and the threshold are known by a sample only, and the interval allows for both. Each of its ends is missed
    with at most 2.5 %, of which one half is for the threshold and the other half for the members:

    - The number of outsiders in the sample above the true threshold is binomial. Its quantiles bound the threshold by
      two outsiders of the sample, whatever the scores' distribution.
    - Above either bound the share of members has the exact interval (`fedarena.core.binomial`).

    Where the outsiders are so few that all may be below the threshold, the lower end is 0: fewer than 436 at 1 %.

    Args:
        positives, negatives: scores of members and outsiders.
        estimate: says how many independent ones they are worth.
        together: how many such intervals are to hold at once in 95 of 100 cases (Bonferroni).
    """
    from scipy.stats import binom

    tail, counted, members = TAIL / 2 / together, max(1, math.floor(estimate.outsiders)), estimate.members
    worth = len(negatives) / counted
    fewest, most = (float(binom.ppf(level, counted, rate)) for level in (tail, 1 - tail))
    line = negatives.sort(descending=True).values
    above, below = math.floor(worth * fewest), math.ceil(worth * most)

    def found(threshold: Tensor) -> float:
        return float((positives > threshold).double().mean()) * members

    low = binomial_interval(found(line[above - 1]), members, tail)[0] if above else 0.0
    high = binomial_interval(found(line[below]), members, tail)[1] if below < len(line) else 1.0
    return low, high


def false_positives(rate: float, outsiders: int) -> int:
    """The number of outsiders that a false positive rate allows, rounded down."""
    return math.floor(rate * outsiders + 1e-9)


def ranked(values: Tensor) -> Tensor:
    """Scores as they are compared: NaN counts as the least likely."""
    return values.nan_to_num(-torch.inf, torch.inf, -torch.inf)
