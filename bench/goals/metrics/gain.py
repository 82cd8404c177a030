"""What a model gains over the best that can be had without a federation.

    b        = max(chance, local-only, server-only)              `unfederated`
    utility  = (accuracy − b)/(FedAvg's accuracy − b)            `gain`, cut to [0, 1]

Chance is a constant answer. Local-only is the mean of clients that train alone, and server-only the defense's server,
if it holds samples (`fedarena.problem.alone.parties`). A server that ignores its clients and trains on these samples
may end a little above its reference, which is chosen on a part of them; boards rank no defense that gains so little
(`fedarena.board.references.without_gain`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
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


def floor_of(utility: Mapping[str, Any]) -> float:
    """What a model has to beat: b, or chance where the parties alone were not measured."""
    floor = unfederated(utility)
    chance: float = utility["chance"]
    return chance if floor is None else floor


def gained(accuracy: float, floor: float) -> bool:
    """Whether a model is better than what it has to beat."""
    return accuracy - floor >= LEAST_GAIN


def learned_nothing(accuracies: Sequence[float], chance: float) -> int:
    """On how many seeds a model is hardly better than a constant answer: less than `LEAST_GAIN` above it.

    It is 0 unless these are half of the seeds or more, or the mean is so, too. An interval over two or three seeds is
    so wide that it holds chance whatever the model reaches. Each accuracy is of hundreds of held-out samples, so that
    `LEAST_GAIN` is several standard errors.

    Args:
        accuracies: one a seed.
    """
    nothing = sum(not gained(accuracy, chance) for accuracy in accuracies)
    most = 2 * nothing >= len(accuracies) or not gained(fmean(accuracies), chance)
    return nothing if most else 0


def worthwhile(utility: Mapping[str, Any]) -> bool:
    """Whether FedAvg gains something over clients that train alone and a constant answer; False if it is not known.

    Where it does, a defense whose server reaches as much alone has no use for a federation, and its scores there are 0.
    That is no fault of the problem: `fltrust` asks for a hundred samples on the server, and most defenses for none.
    """
    reference = utility.get("fedavg_accuracy")
    return reference is not None and gained(reference, floor_of(_without_server(utility)))


def mean_gain(utilities: Sequence[Mapping[str, Any]]) -> tuple[float, float] | None:
    """(FedAvg's accuracy, b without a server), means over seeds; None where the parties alone were not measured."""
    floors = [unfederated(_without_server(utility)) for utility in utilities]
    known = [floor for floor in floors if floor is not None]
    if not known or len(known) < len(floors):
        return None
    return fmean(utility["fedavg_accuracy"] for utility in utilities), fmean(known)


def _without_server(utility: Mapping[str, Any]) -> dict[str, Any]:
    alone = {name: value for name, value in utility.get("references", {}).items() if name != "server_only"}
    return {**utility, "references": alone}


def gain(utility: Mapping[str, Any]) -> float | None:
    """The utility in [0, 1] of a model with `clean_accuracy`, `fedavg_accuracy` and `references`.

    It is None where a federation is of no use (`worthwhile`), and 0 where it is of no use to the defense, whose server
    reaches as much alone. Where the parties alone were not measured it is accuracy/FedAvg's, as boards had it.
    """
    accuracy: float = utility["clean_accuracy"]
    reference: float = utility["fedavg_accuracy"]
    floor = unfederated(utility)
    if floor is None:
        return min(1.0, max(0.0, accuracy / reference)) if reference > 0 else 0.0
    if not gained(reference, floor):
        return 0.0 if worthwhile(utility) else None
    return min(1.0, max(0.0, (accuracy - floor) / (reference - floor)))
