"""The one interval for the area under a ROC curve, valid near 0 and 1 and for candidates in groups that are alike.

An interval by standard errors shrinks to nothing as a ranking becomes perfect: of 20 members and 20 outsiders whose
true AUC is 0.98, it holds the truth in 75 of 100 draws. A score interval does not shrink, since it computes for each A
what spread an AUC of A would have; but it assumes independent candidates, whose scores have equal spread. The interval
here is the hull of both, and the standard error is that of a few candidates more that went wrong (`_of_two_more`).
How often it holds the truth was simulated by `benchmarks/coverage.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import torch
from torch import Tensor

from fedarena.core.text.numbers import above_most, t_quantile

BISECTIONS = 60


@dataclass(frozen=True)
class AucEstimate:
    """An AUC, and what its interval needs.

    Attributes:
        auc: the probability that a member outranks an outsider; a tie counts one half.
        members, outsiders: how many independent candidates those that were ranked are worth.
        variance: of the AUC, the square of its standard error.
        units: what the variance counts: groups whose candidates are alike, or candidates.
    """

    auc: float
    members: float
    outsiders: float
    variance: float
    units: int


def estimate_auc(inside: Sequence[Tensor], outside: Sequence[Tensor], alike: bool) -> AucEstimate:
    """The AUC of a ranking.

    Args:
        inside, outside: the scores of the members and of the outsiders of each group.
        alike: whether the candidates of a group are alike, so that they are worth fewer independent ones.

    With groups that are alike, M members count as M/D and N outsiders as N/D, where D is the design effect. D is
    estimated twice: as the variance by groups over that by single candidates, which fails where few groups err, and
    from how alike the ranks of a group are (`_effect_of_ranks`). The mean of both is taken, the first one with the
    share of the groups that err as its weight.

    A single group cannot show how groups differ. Its interval counts candidates, and is that of this one group.
    """
    inside, outside = zip(*[pair for pair in zip(inside, outside, strict=True) if sum(map(len, pair))], strict=True)
    members, outsiders = torch.cat(list(inside)), torch.cat(list(outside))
    above, below = [share_below(v, outsiders) for v in inside], [1 - share_below(v, members) for v in outside]
    auc = float(torch.cat(above).mean())
    parts = [
        ((v - auc) / len(members), (u - auc) / len(outsiders)) for v, u in zip(above, below, strict=True)
    ]  # what each candidate adds to the AUC's error
    single = torch.cat([part for pair in parts for part in pair])
    more = _of_two_more(auc, len(members), len(outsiders))
    if not alike or len(parts) < 2:
        return AucEstimate(auc, len(members), len(outsiders), _variance(single) + more, len(single))
    variance = _variance(torch.stack([v.sum() + u.sum() for v, u in parts]))
    largest = (_mean_group(inside) + _mean_group(outside)) / 2
    of_ranks = (_effect_of_ranks(inside) + _effect_of_ranks(outside)) / 2
    independent = _variance(single)
    ratio = min(max(variance / independent, 1.0), largest) if independent > 0 else of_ranks
    err = min(
        sum(bool((v != best).any()) or bool((u != best).any()) for v, u in zip(above, below, strict=True))
        for best in (1.0, 0.0)
    ) / len(parts)
    effect = err * ratio + (1 - err) * of_ranks
    return AucEstimate(auc, len(members) / effect, len(outsiders) / effect, variance + more, len(parts))


def auc_interval(estimate: AucEstimate, together: int = 1) -> tuple[float, float]:
    """The 95 % interval of an AUC: the hull of AUC ± t·(standard error) and of `score_interval`.

    It is never of zero width.

    Args:
        together: how many such intervals are to hold at once in 95 of 100 cases (Bonferroni).
    """
    low, high = score_interval(estimate.auc, estimate.members, estimate.outsiders, together)
    half = t_quantile(estimate.units - 1, together) * math.sqrt(estimate.variance)
    return min(low, max(0.0, estimate.auc - half)), max(high, min(1.0, estimate.auc + half))


def share_below(values: Tensor, others: Tensor) -> Tensor:
    """For each value the share of `others` below it, equal ones counted half."""
    line = others.sort().values
    twice = torch.searchsorted(line, values) + torch.searchsorted(line, values, right=True)
    return twice.double() / (2 * len(others))


def score_interval(auc: float, positives: float, negatives: float, together: int = 1) -> tuple[float, float]:
    """A part of `auc_interval`: all A with |AUC − A| ≤ z √V(A), where (Newcombe, Statistics in Medicine 25, 2006,
    part 2, method 5), with m positives, n negatives and N = (m + n) / 2,

        V(A) = A (1 − A) [1 + (N − 1)(1 − A)/(2 − A) + (N − 1) A/(1 + A)] / (m n)

    Args:
        auc: from 0 to 1.
        positives, negatives: how many; they need not be whole.
        together: how many such intervals are to hold at once in 95 of 100 cases; z is the quantile of 1 −
            0.025/together.

    Raises:
        ValueError: the AUC is not in [0, 1], or there are no positives or no negatives.
    """
    if not 0 <= auc <= 1 or positives < 1 or negatives < 1:
        raise ValueError(f"an AUC of {auc} of {positives} positives and {negatives} negatives")
    larger, z = (positives + negatives) / 2 - 1, NormalDist().inv_cdf(above_most(together))

    def outside(a: float) -> bool:
        variance = a * (1 - a) * (1 + larger * (1 - a) / (2 - a) + larger * a / (1 + a)) / (positives * negatives)
        return abs(auc - a) > z * math.sqrt(variance)

    return _edge(auc, 0.0, outside), _edge(auc, 1.0, outside)


def _edge(inside: float, end: float, outside: Callable[[float], bool]) -> float:
    """The end of the interval on the way from the AUC to `end`."""
    if inside == end:
        return end
    for _ in range(BISECTIONS):
        middle = (inside + end) / 2
        if outside(middle):
            end = middle
        else:
            inside = middle
    return inside


def _variance(sums: Tensor) -> float:
    """The variance of an AUC whose candidates come in correlated groups, by Obuchowski (Biometrics 53, 1997). It
    is DeLong's where every group is one candidate.

    V(i) is the share of all outsiders below member i, V(j) the share of all members above outsider j. Their sums less
    their expectation, per group g,

        v_g = Σ_{i in g} (V(i) − AUC),   u_g = Σ_{j in g} (V(j) − AUC)

    give the variance I/(I − 1)·Σ_g (v_g/M + u_g/N)², with I groups, M members and N outsiders. This assumes as many
    groups with members as with outsiders. Where every group is one candidate this is false, and DeLong's formula has
    M/(M − 1) and N/(N − 1) in place of I/(I − 1).

    Args:
        sums: v_g/M + u_g/N of each group, of two groups or more.
    """
    return len(sums) / (len(sums) - 1) * float(sums.square().sum())


def _of_two_more(auc: float, members: int, outsiders: int) -> float:
    """What two members and two outsiders more add to the variance of an AUC, if one of each is ranked entirely wrong
    and the other right: (AUC² + (1 − AUC)²)/(n (n − 1)), n with these two, of either kind.

    Where few candidates go wrong, a sample may hold none of them, and its own spread says nothing of them. So one adds
    two successes and two failures to a share (Agresti and Coull 1998).
    """
    return (auc**2 + (1 - auc) ** 2) * sum(1 / ((n + 2) * (n + 1)) for n in (members, outsiders))


def _mean_group(groups: Sequence[Tensor]) -> float:
    """How large the group of a candidate is in the mean, and so the largest design effect."""
    return sum(len(v) ** 2 for v in groups) / sum(map(len, groups))


def _effect_of_ranks(groups: Sequence[Tensor]) -> float:
    """The design effect 1 + (n − 1) ρ of groups of n candidates of one kind, members or outsiders.

    ρ is the correlation of the ranks within groups, by an analysis of variance, and at least 0. Ranks among
    candidates of the same kind differ even where the ranking of members above outsiders is perfect.
    """
    groups = [v for v in groups if len(v)]
    total, count = sum(map(len, groups)), len(groups)
    if count < 2 or total == count:
        return 1.0
    everyone = torch.cat(list(groups))
    ranks = [share_below(v, everyone) for v in groups]
    between = sum(len(r) * (float(r.mean()) - 0.5) ** 2 for r in ranks) / (count - 1)
    within = sum(float((r - r.mean()).square().sum()) for r in ranks) / (total - count)
    usual = (total - _mean_group(groups)) / (count - 1)
    spread = between + (usual - 1) * within
    alike = max(0.0, (between - within) / spread) if spread > 0 else 0.0
    return 1 + (_mean_group(groups) - 1) * alike
