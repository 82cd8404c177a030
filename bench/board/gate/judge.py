"""Contrasts → which of them changed by more than their noise, at a stated rate of false alarms over all of them.

Identical contrasts need no test. Each other one gets a p-value, and Holm's method holds the chance of any false alarm
among them at or below the rate. The p-value is the larger of two:

    moderated t     d̄ / sqrt(s̃² / n), s̃² from `moderated.shrunk`; the prior is fitted to contrasts of one kind
    a lucky row     for scores of which every seed lies on one side: `jumps.Leaps.chance`

and a contrast is a finding if its adjusted p is at or below the rate, and the mean difference at least its `effect`.
What is assumed: where nothing changed, differences are as likely up as down. The rate is not proven but measured, for
scores that are discrete, at their limits, heavy-tailed or correlated (benchmarks/false_alarms.py).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fedarena.board.gate.contrast import Contrast
from fedarena.board.gate.holm import adjusted
from fedarena.board.gate.jumps import Leaps
from fedarena.board.gate.moderated import Prior, fit, shrunk

ENOUGH = 10
"""A kind with so many changed contrasts has a prior of its own; smaller kinds are joined."""
FLOOR = 0.25
"""The least standard deviation of a difference, as a share of the effect that matters. Without it, scores that are
constant on both boards would be infinitely certain."""
CELLS_PRIOR, MEANS_PRIOR = 4.0, 8.0
"""The most degrees of freedom that a prior may have. Smyth sets no limit, so that a few scores that leap among many
quiet ones would be taken for quiet. The noise of means varies less than the noise of single scores."""


@dataclass(frozen=True)
class Verdict:
    """What became of a contrast.

    Attributes:
        outcome: identical; `noise`: changed, within noise or by less than matters; `loss`: the defender's score fell;
            `gain`: it rose; `unknown`: one seed, whose noise cannot be known, and a change that would matter;
            `changed`: like `noise`, under rules by which no score may change.
        half: half of the 95 % confidence interval of the mean difference, of this contrast alone; None for one seed.
        p: adjusted for all contrasts that changed; None where there was no test.
    """

    contrast: Contrast
    outcome: str
    half: float | None = None
    p: float | None = None

    @property
    def finding(self) -> bool:
        """Whether a person must look at it."""
        return self.outcome in ("loss", "gain", "unknown", "changed")


def judge(contrasts: Sequence[Contrast], rate: float, losses_only: bool = False, means: bool = False) -> list[Verdict]:
    """One verdict a contrast, in their order.

    Args:
        rate: the chance of any false alarm.
        losses_only: tests ask only whether scores fell.
        means: the contrasts are means over many cells, which do not leap.
    """
    changed = [c for c in contrasts if len(c.seeds) > 1 and not c.identical]
    pools = _pools(changed)
    priors = _priors(changed, pools, MEANS_PRIOR if means else CELLS_PRIOR)
    leaps = {} if means else _leaps(contrasts, pools)
    tests = [_test(c, priors[pools[c.kind]], leaps.get(pools[c.kind]), losses_only) for c in changed]
    ps = adjusted([p for _, p in tests])
    tested = {
        id(c): _verdict(c, half, p, rate, losses_only) for c, (half, _), p in zip(changed, tests, ps, strict=True)
    }
    return [tested.get(id(c)) or _verdict(c, None, None, rate, losses_only) for c in contrasts]


def _test(c: Contrast, prior: Prior, leaps: Leaps | None, losses_only: bool) -> tuple[float, float]:
    """(half of the 95 % interval, p)."""
    from scipy.special import stdtr, stdtrit

    s2, degrees = shrunk(_floored(c), len(c.seeds) - 1, prior)
    error = math.sqrt(s2 / len(c.seeds))
    sides = 1 if losses_only else 2
    away = c.difference if losses_only else -abs(c.difference)
    p = sides * float(stdtr(degrees, away / error))
    if leaps is not None and c.gap > 0 and away < 0:
        p = max(p, sides / 2 * leaps.chance(c.gap, len(c.seeds)))  # the bound is for leaps in either direction
    return float(stdtrit(degrees, 0.975)) * error, p


def _verdict(c: Contrast, half: float | None, p: float | None, rate: float, losses_only: bool) -> Verdict:
    if c.identical:
        return Verdict(c, "identical")
    sure = p is None or p <= rate
    if not sure or not c.large or (losses_only and c.difference > 0):
        return Verdict(c, "noise", half, p)
    return Verdict(c, "unknown" if p is None else "loss" if c.difference < 0 else "gain", half, p)


def _pools(changed: Sequence[Contrast]) -> dict[str, str]:
    """Kind → the pool of its prior: the kind, its axis, or everything, whichever first has enough changed contrasts."""
    kinds, axes = Counter(c.kind for c in changed), Counter(c.axis for c in changed)
    pools = {}
    for c in changed:
        pools[c.kind] = c.kind if kinds[c.kind] >= ENOUGH else f"all {c.axis}" if axes[c.axis] >= ENOUGH else "all"
    return pools


def _members(contrasts: Sequence[Contrast], pools: dict[str, str], pool: str) -> list[Contrast]:
    """The contrasts of a pool. A pool of joined kinds has all contrasts of its axis, or all of the board."""
    kinds = {k for k, p in pools.items() if p == pool}
    axes = {f"all {c.axis}": c.axis for c in contrasts}
    return [c for c in contrasts if pool == "all" or c.kind in kinds or c.axis == axes.get(pool)]


def _priors(changed: Sequence[Contrast], pools: dict[str, str], at_most: float) -> dict[str, Prior]:
    priors = {}
    for pool in set(pools.values()):
        mine = _members(changed, pools, pool)
        rows = sorted((_floored(c), len(c.seeds) - 1) for c in mine)  # the order of cells must not matter, to the bit
        prior = fit([s2 for s2, _ in rows], [degrees for _, degrees in rows])
        priors[pool] = Prior(min(prior.degrees, at_most), prior.variance)
    return priors


def _leaps(contrasts: Sequence[Contrast], pools: dict[str, str]) -> dict[str, Leaps]:
    """How widely seeds spread in all contrasts of a pool, whether they changed or not."""
    several = [c for c in contrasts if len(c.seeds) > 1]
    board = [r for c in several for r in c.ranges]
    return {
        pool: Leaps([r for c in _members(several, pools, pool) for r in c.ranges], board)
        for pool in set(pools.values())
    }


def _floored(c: Contrast) -> float:
    return max(c.variance, (FLOOR * c.effect) ** 2)
