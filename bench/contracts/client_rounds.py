"""The rounds after which a client learns the others' mean upload, from two consecutive broadcasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedarena.contracts.defense import Defense
from fedarena.contracts.simulators import others_of, why_no_difference
from fedarena.contracts.transcript import Seen
from fedarena.core.threat import NotApplicable, Threat


def client_rounds(
    defense: Defense,
    threat: Threat,
    seen: Mapping[int, Seen],
    victims: Sequence[int],
    hidden: str = "the clients' mean upload",
) -> list[int] | NotApplicable:
    """Those of `victims` in which the server's step shows the client what the others sent.

    The step W_t − W_{t+1} must be a multiple of the mean upload, the client must have seen both broadcasts, and
    another client's upload must be in the mean.

    Args:
        defense: the protocol.
        threat: the client.
        seen: the rounds that it saw.
        victims: the rounds that are attacked.
        hidden: what Adam's steps do not show, for the reason.

    Returns:
        At least one round, or why there is none.
    """
    if defense.task.schedule.server_optimizer != "sgd":
        return NotApplicable(f"the server's Adam steps do not show {hidden}, and this attack does not invert Adam")
    if why := defense.why_not_mean():
        return NotApplicable(why)
    return consecutive_rounds(defense, threat, seen, victims)


def consecutive_rounds(
    defense: Defense, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
) -> list[int] | NotApplicable:
    """Those of `victims` in which another client's upload counted, and whose broadcast and next one the client saw."""
    rounds = [t for t in victims if t in seen and t + 1 in seen and others_of(seen[t], threat)]
    return rounds or NotApplicable(why_no_difference(defense.task))
