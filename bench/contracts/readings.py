"""All readings of a defense: its own, and one of what its secure sum leaves in clear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedarena.contracts import shared_mask
from fedarena.contracts.defense import Defense
from fedarena.contracts.observation import Reading
from fedarena.contracts.transcript import Seen
from fedarena.core.threat import NotApplicable, Threat


def all_readings(
    defense: Defense, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
) -> Sequence[Reading] | NotApplicable:
    """`Defense.readings`. In the adaptive form also what is in clear if masks repeat within a message.

    A protocol that has a reading of that name reads such masks in its own way (`fedarena.contracts.shared_mask`).
    """
    readings = defense.readings(threat, seen, victims)
    if isinstance(readings, NotApplicable) or defense.secure is None or defense.secure.repeat == 1:
        return readings
    if threat.form == "paper" or not threat.visibility.ups or any(r.name == shared_mask.NAME for r in readings):
        return readings
    return [*readings, *shared_mask.readings(defense, defense.secure, threat, seen, victims)]
