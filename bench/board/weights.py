"""The weights of a reader to whom some scores matter more than others."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from fedarena.core.errors import UserError

AXES = ("utility", "integrity", "privacy")
"""The scores that can have a weight."""

Weights = Mapping[str, float]
"""Weights ≥ 0 by axis. An axis without one has weight 0."""


def read_weights(text: str) -> dict[str, float]:
    """The weights of words such as "utility=1,integrity=2".

    Raises:
        UserError: a name is no axis or stands there twice, a weight is no number from 0 on, or all of them are 0.
    """
    weights: dict[str, float] = {}
    for word in text.split(","):
        name, _, number = (part.strip() for part in word.partition("="))
        if name not in AXES:
            raise UserError(f"option 'weights' is '{text}', allowed: AXIS=NUMBER,... with AXIS of {', '.join(AXES)}")
        if name in weights:
            raise UserError(f"option 'weights' is '{text}', which gives {name} twice, allowed: once")
        weights[name] = _weight(text, name, number)
    if not any(weights.values()):
        raise UserError(f"option 'weights' is '{text}', allowed: at least one weight above 0")
    return weights


def _weight(text: str, name: str, number: str) -> float:
    try:
        weight = float(number)
    except ValueError:
        weight = math.nan
    if not (math.isfinite(weight) and weight >= 0):
        raise UserError(f"option 'weights' is '{text}', where {name} is '{number}', allowed: a number from 0 on")
    return weight


def require_weight_on(axes: Collection[str], weights: Weights) -> None:
    """Raises UserError where none of these axes, which are those that count, has a weight."""
    if not any(weights.get(axis) for axis in axes):
        given = ",".join(f"{axis}={weight:g}" for axis, weight in weights.items())
        raise UserError(f"option 'weights' is '{given}', allowed against these threats: a weight on {', '.join(axes)}")


def used_weights(axes: Collection[str], weights: Weights) -> dict[str, float]:
    """The weights above 0 of the axes that count."""
    return {axis: weights[axis] for axis in axes if weights.get(axis, 0) > 0}
