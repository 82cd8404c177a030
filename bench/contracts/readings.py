"""All readings of a defense: its own, and those that follow from its secure sum and from its server's step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedarena.contracts import server_step, shared_mask
from fedarena.contracts.defense import Defense
from fedarena.contracts.observation import Reading
from fedarena.contracts.sent_statistics import with_statistics
from fedarena.contracts.transcript import Seen
from fedarena.core.threat import NotApplicable, Threat


def all_readings(
    defense: Defense, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
) -> Sequence[Reading] | NotApplicable:
    """`Defense.readings`, and in the adaptive form what a party finds out without the defense's help.

    That is what the server's step makes of one upload (`fedarena.contracts.server_step`), and what is in clear if masks
    repeat within a message (`fedarena.contracts.shared_mask`). A protocol that has a reading of the latter's name reads
    such masks in its own way. Without a secure sum, observations have what clients sent beside their uploads, too
    (`fedarena.contracts.sent_statistics`).
    """
    readings = defense.readings(threat, seen, victims)
    if isinstance(readings, NotApplicable) or threat.form == "paper" or not threat.visibility.ups:
        return readings
    if defense.secure is None:
        found = [*readings, *server_step.readings(defense, threat, seen, victims, readings)]
        return with_statistics(found, defense, seen)
    if defense.secure.repeat == 1 or any(r.name == shared_mask.NAME for r in readings):
        return readings
    return [*readings, *shared_mask.readings(defense, defense.secure, threat, seen, victims)]
