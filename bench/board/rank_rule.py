"""By what a board is ranked, in words."""

from __future__ import annotations

from collections.abc import Sequence

from fedarena.board.phrases import join_and
from fedarena.board.weights import Weights, used_weights


def rank_rule(axes: Sequence[str], weights: Weights | None) -> str:
    """The sentence above a ranking.

    Args:
        axes: the scores that count.
        weights: None where the lowest score decides.
    """
    if len(axes) == 1:
        return f"Ranked by {axes[0]}."
    if weights is None:
        return f"Ranked by the lowest of {join_and(axes)}. Among equals the next lowest decides."
    used = used_weights(axes, weights)
    named = join_and([f"{axis} (weight {weight:g})" for axis, weight in used.items()]) if used else "nothing"
    return f"Ranked by the weighted mean of {named}. The mean of all breaks ties."


def deciding_name(weights: Weights | None) -> str:
    """The name of the score by which defenses are ranked."""
    return "lowest score" if weights is None else "weighted mean"
