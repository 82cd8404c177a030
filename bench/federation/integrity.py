"""What the federation tells of a poisoned run: whose uploads the server used.

`fedarena.goals.metrics.harm` judges the accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fedarena.federation.one_round import Verdict


def shares(verdicts: Sequence[Verdict], corrupted: frozenset[int]) -> list[dict[str, float]]:
    """How the server treated corrupted and honest uploads, round by round.

    Returns, for each round:
        corrupted_weight: the corrupted clients' share of the aggregate's weights, Σ_corrupted used / Σ used (for
        rules that select, the share of the selected that is corrupted); honest_rejected and corrupted_rejected:
        shares of each with weight 0; and for every further name a protocol's own value, as honest_NAME and
        corrupted_NAME. Rules without weights give none.
    """
    return [_split(v, corrupted) for v in verdicts]


def means_over_rounds(rounds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each of `shares` over the rounds that have it."""
    return {name: fmean(r[name] for r in rounds if name in r) for name in _names(rounds)}


def by_round(rounds: Sequence[Mapping[str, float]]) -> dict[str, list[float | None]]:
    """Each of `shares` as a curve, rounded to four digits; None for a round without a finite value."""
    curves = {name: [r.get(name, math.nan) for r in rounds] for name in _names(rounds)}
    return {name: [round(v, 4) if math.isfinite(v) else None for v in values] for name, values in curves.items()}


def _names(rounds: Sequence[Mapping[str, float]]) -> list[str]:
    return list(dict.fromkeys(name for r in rounds for name in r))


def _split(verdict: Verdict, corrupted: frozenset[int]) -> dict[str, float]:
    bad = [i for i, c in enumerate(verdict.clients) if c in corrupted]
    good = [i for i, c in enumerate(verdict.clients) if c not in corrupted]
    treatment: dict[str, float] = {}
    for name, values in verdict.values.items():
        if name == "used":
            total = sum(values)
            if total > 0:
                treatment["corrupted_weight"] = sum(values[i] for i in bad) / total
            name, values = "rejected", tuple(float(v == 0) for v in values)
        for who, members in (("honest", good), ("corrupted", bad)):
            if members:
                treatment[f"{who}_{name}"] = fmean(values[i] for i in members)
    return treatment
