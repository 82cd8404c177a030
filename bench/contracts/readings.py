"""All readings of a defense: its own, and what its secure sum leaves in clear."""

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
    """`Defense.readings`, and in the adaptive form what masks leave in clear that repeat within a message.

    A protocol with a reading of that name has its own way to read such masks (`fedarena.contracts.shared_mask`).
    """
    readings = defense.readings(threat, seen, victims)
    if isinstance(readings, NotApplicable) or defense.secure is None or defense.secure.repeat == 1:
        return readings
    if threat.form == "paper" or not threat.visibility.ups or any(r.name == shared_mask.NAME for r in readings):
        return readings
    return [*readings, *shared_mask.readings(defense, defense.secure, threat, seen, victims)]
