"""Metrics of membership scores: how well they rank members above outsiders."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from fedarena.contracts.inference import Scores
from fedarena.core.text.numbers import t_quantile

RATES = {"tpr_at_1_percent_fpr": 0.01, "tpr_at_0.1_percent_fpr": 0.001}
"""False positive rates at which the share of members found is measured."""

TOGETHER = "_together"
"""Ends the name of an interval's end that holds for all of a party's readings at once."""


def membership_metrics(
    answers: Sequence[Scores], members: Sequence[Tensor], grouped: bool = True, readings: int = 1
) -> dict[str, float]:
    """How well the scores separate members from outsiders, over the candidates of all observations together.

    Args:
        answers: scores [m] per observation, which are not normalised.
        members: which candidates of each observation are members, [m] (bool).
        grouped: whether candidates of one observation are alike, so that the interval counts observations; else it
            counts candidates.
        readings: how many rankings are judged, of which the best is shown.

    Returns:
        auc, the probability that a member outranks an outsider (a tie counts one half; 0.5 is chance); auc_low and
        auc_high, its 95 % interval, if there are several units to count; auc_low_together and auc_high_together, for
        several readings, which hold for all of them at once (Bonferroni); advantage = 2·auc − 1; the true positive rate
        at a false positive rate of 1 % and of 0.1 %, where one outsider is no more than that; unless grouped, its 95 %
        interval (`binomial_interval`) as NAME_low and NAME_high, which takes the threshold as given although few
        outsiders determine it; candidates, the number judged.

    Raises:
        ValueError: there is not one answer per observation or one score per candidate, or there are no candidates.
    """
    pairs = _pairs(answers, members)
    inside, outside = [ranked(v[m]) for v, m in pairs], [ranked(v[~m]) for v, m in pairs]
    positives, negatives = torch.cat(inside), torch.cat(outside)
    if not len(positives) or not len(negatives):
        raise ValueError("no candidates to judge")
    above, below = _share_below(positives, negatives), 1 - _share_below(negatives, positives)
    auc = float(above.mean())
    metrics = {"auc": auc, "advantage": 2 * auc - 1, "candidates": float(len(positives) + len(negatives))}
    shares = (above - auc) / len(positives), (below - auc) / len(negatives)
    sums = torch.cat(shares)
    if grouped:
        each = [s.split([len(v) for v in some]) for s, some in zip(shares, (inside, outside), strict=True)]
        sums = torch.stack([v.sum() + u.sum() for v, u in zip(*each, strict=True)])
    metrics |= _auc_intervals(auc, sums, readings)
    return metrics | _true_positive_rates(positives, negatives, with_interval=not grouped)


def _pairs(answers: Sequence[Scores], members: Sequence[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """Scores (float64) and which candidates are members, by observation. Raises ValueError where they do not match."""
    if len(answers) != len(members):
        raise ValueError(f"scores for {len(answers)} of {len(members)} observations")
    for answer, truth in zip(answers, members, strict=True):
        if answer.values.shape != truth.shape:
            raise ValueError(f"scores of shape {tuple(answer.values.shape)} for {len(truth)} candidates")
    return [(a.values.double().cpu(), m.cpu()) for a, m in zip(answers, members, strict=True)]


def _auc_intervals(auc: float, sums: Tensor, readings: int) -> dict[str, float]:
    """The ends of the AUC's intervals; empty for a single group. `sums`: see `_standard_error`."""
    ends: dict[str, float] = {}
    if len(sums) > 1:
        for kind, together in kinds_of_interval(readings):
            half = t_quantile(len(sums) - 1, together) * _standard_error(sums)
            ends |= {f"auc_low{kind}": max(0.0, auc - half), f"auc_high{kind}": min(1.0, auc + half)}
    return ends


def _true_positive_rates(positives: Tensor, negatives: Tensor, with_interval: bool) -> dict[str, float]:
    """The share of members found at each of `RATES` at which there is an outsider to count."""
    metrics: dict[str, float] = {}
    for name, rate in RATES.items():
        allowed = false_positives(rate, len(negatives))
        if not allowed:
            continue
        above_line = positives > negatives.sort(descending=True).values[allowed]
        metrics[name] = float(above_line.double().mean())
        if with_interval:
            low, high = binomial_interval(int(above_line.sum()), len(positives))
            metrics |= {f"{name}_low": low, f"{name}_high": high}
    return metrics


def kinds_of_interval(readings: int) -> list[tuple[str, int]]:
    """Suffix of the names of an interval's ends → the number of readings for which the interval holds at once."""
    return [("", 1)] if readings == 1 else [("", 1), (TOGETHER, readings)]


def false_positives(rate: float, outsiders: int) -> int:
    """The number of outsiders that a false positive rate allows, rounded down."""
    return math.floor(rate * outsiders + 1e-9)


def binomial_interval(k: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share if k of n were found, by Clopper and Pearson (Biometrika 26, 1934). It holds the
    truth in at least 95 % of cases, even for small n."""
    from scipy.stats import binomtest

    low, high = binomtest(k, n).proportion_ci(0.95, "exact")
    return float(low), float(high)


def ranked(values: Tensor) -> Tensor:
    """Scores as they are compared: NaN counts as the least likely."""
    return values.nan_to_num(-torch.inf, torch.inf, -torch.inf)


def _share_below(values: Tensor, others: Tensor) -> Tensor:
    """For each value the share of `others` below it, equal ones counted half."""
    line = others.sort().values
    twice = torch.searchsorted(line, values) + torch.searchsorted(line, values, right=True)
    return twice.double() / (2 * len(others))


def _standard_error(sums: Tensor) -> float:
    """The standard error of an AUC whose candidates come in correlated groups, by Obuchowski (Biometrics 53, 1997). It
    is DeLong's where every group is one candidate.

    V(i) is the share of all outsiders below member i, V(j) the share of all members above outsider j. Their sums less
    their expectation, per group g,

        v_g = Σ_{i in g} (V(i) − AUC),   u_g = Σ_{j in g} (V(j) − AUC)

    give the variance I/(I − 1)·Σ_g (v_g/M + u_g/N)², with I groups, M members and N outsiders. This assumes as many
    groups with members as with outsiders. Where every group is one candidate this is false, and DeLong's formula has
    M/(M − 1) and N/(N − 1) in place of I/(I − 1).

    Args:
        sums: v_g/M + u_g/N of each group.
    """
    return math.sqrt(len(sums) / (len(sums) - 1) * float(sums.square().sum()))
