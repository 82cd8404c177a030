"""The ROC curve of a ranking, reduced to the few points that records hold."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from fedarena.contracts.inference import Scores
from fedarena.goals.metrics.membership import ranked

RATES = (0.0, *(10 ** (-3 + i / 8) for i in range(17)), *(i / 40 for i in range(5, 40)))
"""False positive rates at which points of a long curve are retained: in equal factors up to 10 %, then in equal
steps."""

MOST = len(RATES) + 2
"""The most points of a curve: one for each of `RATES`, and both ends."""


def roc(answers: Sequence[Scores], members: Sequence[Tensor]) -> list[list[float]]:
    """Operating points of the scores of all observations together.

    Each point is exact: all candidates with at least a certain score are taken for members. Points on the line between
    their neighbours are redundant and are left out. If more than `MOST` are left, only the highest one at each of
    `RATES` is retained.

    Args:
        answers: scores [m] per observation; NaN counts as least likely.
        members: which candidates of each observation are members, [m] (bool).

    Returns:
        [false positive rate, true positive rate], both ascending, from [0, 0] to [1, 1].

    Raises:
        ValueError: there is no member, or no outsider.
    """
    values = torch.cat([ranked(a.values.double().cpu()) for a in answers])
    truth = torch.cat([m.cpu() for m in members])
    inside, outside = int(truth.sum()), int((~truth).sum())
    if not inside or not outside:
        raise ValueError("a ROC curve needs members and others")
    values, order = values.sort(descending=True)
    members_taken, last = truth[order].cumsum(0), torch.ones(len(values), dtype=torch.bool)
    last[:-1] = values[1:] != values[:-1]  # equal scores are taken together
    taken = torch.arange(1, len(values) + 1)
    counts = [(0, 0), *zip((taken - members_taken)[last].tolist(), members_taken[last].tolist(), strict=True)]
    return [[false / outside, true / inside] for false, true in _thinned(_corners(counts), outside)]


def _corners(counts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The points without those on the line between their neighbours."""
    corners = counts[:1]
    for (x, y), (after_x, after_y) in pairwise([*counts[1:], counts[-1]]):
        (before_x, before_y) = corners[-1]
        if (after_x, after_y) == (x, y) or (x - before_x) * (after_y - y) != (y - before_y) * (after_x - x):
            corners.append((x, y))
    return corners


def _thinned(counts: list[tuple[int, int]], outside: int) -> list[tuple[int, int]]:
    if len(counts) <= MOST:
        return counts
    best = [max(p for p in counts if p[0] <= rate * outside + 1e-9) for rate in RATES]
    return sorted({counts[0], *best, counts[-1]})
