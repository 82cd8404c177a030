"""γ̂ of one round, by the best method of `gamma` and `gamma_steady` that a party's rounds allow."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from fedarena.contracts.defense import Defense
from fedarena.contracts.transcript import Seen
from fedarena.core.threat import Threat
from fedarena.defenses.pbpfl.gamma import (
    columns_leave_open,
    gamma_from_columns,
    gamma_from_labels,
    gammas_from_two,
)
from fedarena.defenses.pbpfl.gamma_steady import gamma_from_bounds, gammas_from_balance
from fedarena.defenses.pbpfl.masks import offset, steady
from fedarena.defenses.pbpfl.wire import GAMMA, R_A, Masked, PBPFLWire

NEAREST = 100
"""Broadcasts that are chained: over more of them the model's own drift exceeds what their bounds add."""


def estimate_gamma(defense: Defense, wire: PBPFLWire, seen: Mapping[int, Seen], t: int) -> float:
    """γ̂ of round t by the broadcast after it or before it.

    If these do not determine γ, it is estimated by labels, if the party has some and columns do not contradict them.
    With steady masks, two broadcasts determine γ best if a gradient's step is between them; with one output, all
    broadcasts together do.
    """
    now = wire.open(seen[t].down)
    if steady(wire.options):
        gamma = _by_balance(defense, wire, seen, t)
        if gamma is not None:
            return gamma
        if len(now.r_a) == 1:
            return _of_one_output(defense, wire, seen, t)
    for other in (t + 1, t - 1):
        if other in seen:
            both = gammas_from_two(now, wire.open(seen[other].down), wire.plan)
            if both is not None:
                return both[0]
    own = seen[t].own_data
    if own is not None:
        by_labels = gamma_from_labels(now, wire.wide, defense.task.criterion, *own.images())
        if columns_leave_open(now, by_labels):
            return by_labels
    return gamma_from_columns(now)


def _by_balance(defense: Defense, wire: PBPFLWire, seen: Mapping[int, Seen], t: int) -> float | None:
    """γ̂ of round t from two broadcasts with one SGD step along the mean gradient between them; None without such."""
    schedule = defense.task.schedule
    if schedule.server_optimizer != "sgd" or schedule.server_decay or defense.why_not_mean():
        return None
    for first in (t, t - 1):
        if first in seen and first + 1 in seen:
            sent, after = wire.open(seen[first].down), wire.open(seen[first + 1].down)
            if (both := gammas_from_balance(sent, after, wire.plan)) is not None:
                return both[t - first]
    return None


def _of_one_output(defense: Defense, wire: PBPFLWire, seen: Mapping[int, Seen], t: int) -> float:
    """γ̂ of round t from all broadcasts, for a network with one output and hidden masks that are equal in all rounds."""
    near = sorted(sorted(seen, key=lambda s: abs(s - t))[:NEAREST])
    own = seen[t].own_data

    def labels(sent: Masked) -> float:
        assert own is not None
        return gamma_from_labels(sent, wire.wide, defense.task.criterion, *own.images())

    sents = [wire.open(seen[s].down) for s in near]
    bounds = partial(offset, wire.options)
    return gamma_from_bounds(sents, near.index(t), bounds, labels if own is not None else None)


def coefficients(
    defense: Defense, wire: PBPFLWire, threat: Threat, seen: Mapping[int, Seen], now: Seen
) -> tuple[float, float]:
    """γ and υ = γ²‖r_a‖² of one round: the server's own, or estimates."""
    if threat.party == "server":
        assert now.secret is not None
        gamma = float(now.secret[GAMMA])
    else:
        gamma = estimate_gamma(defense, wire, seen, now.index)
    return gamma, gamma**2 * float(now.down[R_A].double().square().sum())
