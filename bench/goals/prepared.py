"""The records of a trial after its training and before its attack: one for each reading, or the trial's only one."""

from __future__ import annotations

from dataclasses import dataclass

from fedarena.core.threat import Threat
from fedarena.federation.spec import GroupSpec
from fedarena.goals.challenge import Challenge
from fedarena.records.schema import Record


@dataclass(frozen=True)
class CompleteRecord:
    """A record with nothing left to attack.

    Attributes:
        spec, threat: the trial that it belongs to; a run without an attack has no threat.
        record: the record itself.
    """

    spec: GroupSpec
    threat: Threat | None
    record: Record


@dataclass(frozen=True)
class OpenRecord:
    """A record whose reading is still to be attacked.

    Attributes:
        spec, threat: the trial that it belongs to.
        challenge: what the attack gets, sealed off from the run, and what the judge keeps for itself.
        record: the record without the attack's metrics.
        control: the challenge of the control reading, if the reading has nothing to do with what crossed the wires.
    """

    spec: GroupSpec
    threat: Threat
    challenge: Challenge
    record: Record
    control: Challenge | None = None


@dataclass(frozen=True)
class SilentRecord:
    """A record of what a defense gives no reading of, and the harness does (`fedarena.goals.control`).

    Attributes:
        spec, threat: the trial that it belongs to.
        record: the record as it is unless the control reading leaks.
        control: the challenge of the control reading.
    """

    spec: GroupSpec
    threat: Threat
    record: Record
    control: Challenge


PreparedRecord = CompleteRecord | OpenRecord | SilentRecord
