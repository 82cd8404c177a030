"""What a model gains over the best that can be had without a federation.

    b        = max(chance, local-only, server-only)              `unfederated`
    utility  = (accuracy − b)/(FedAvg's accuracy − b)            `gain`, cut to [0, 1]

Chance is a constant answer. Local-only is the mean of clients that train alone, and server-only the defense's server,
if it holds samples (`fedarena.problem.training_alone`). A defense that ignores its clients therefore has no utility,
whatever its server knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

LEAST_GAIN = 0.05
"""A model has gained something if its accuracy exceeds b by at least this; less is noise."""


def unfederated(utility: Mapping[str, Any]) -> float | None:
    """b of a record's or a board's `utility`; None where the parties alone were not measured."""
    chance, alone = utility["chance"], utility.get("references", {})
    if "local_only" not in alone:
        return None
    best: float = max(chance, alone["local_only"], alone.get("server_only", chance))
    return best


def gained(accuracy: float, floor: float) -> bool:
    """Whether a model is better than what it has to beat: b, or chance where b is not known."""
    return accuracy - floor >= LEAST_GAIN


def learned_nothing(accuracies: Sequence[float], chance: float) -> int:
    """On how many seeds a model is no better than a constant answer, if these are half of the seeds or more; else 0.

    An interval over two or three seeds is so wide that it holds chance whatever the model reaches. Each accuracy is of
    hundreds of held-out samples, so that `LEAST_GAIN` is several standard errors.

    Args:
        accuracies: one a seed.
    """
    nothing = sum(not gained(accuracy, chance) for accuracy in accuracies)
    return nothing if 2 * nothing >= len(accuracies) else 0


def gain(accuracy: float, reference: float, floor: float | None) -> float | None:
    """The utility in [0, 1]; None where FedAvg gains nothing, so that there is nothing to keep.

    Args:
        reference: FedAvg's accuracy.
        floor: b. None: accuracy/FedAvg's, as boards had it before parties alone were measured.
    """
    if floor is None:
        return min(1.0, max(0.0, accuracy / reference)) if reference > 0 else 0.0
    if not gained(reference, floor):
        return None
    return min(1.0, max(0.0, (accuracy - floor) / (reference - floor)))
