"""The records of a trial after its training and before its attack: one for each reading, or the trial's only one."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from fedarena.core.compact_pickle import dumps
from fedarena.core.threat import CURIOUS, Threat
from fedarena.federation import compose
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


def task_digest(prepared: PreparedRecord) -> str:
    """A digest of all that the record's attack gets but the party; empty where the task is shared with no other record.

    This package's attacks do not ask for the party, so that two parties that see the same get the same answer: of an
    upload in clear, the server and who listens. Other attacks may ask. So may views that cannot be sealed: then the
    attack says why.
    """
    if isinstance(prepared, CompleteRecord) or compose.added("attack", prepared.spec.attack):
        return ""
    challenges = (None if isinstance(prepared, SilentRecord) else prepared.challenge, prepared.control)
    views = [None if one is None else one.view for one in challenges]
    anyone = [v and replace(v, threat=replace(v.threat, party="server", client=CURIOUS)) for v in views]
    spec = prepared.spec
    try:
        task = dumps((spec.attack, spec.root, spec.device, anyone))
    except Exception:
        return ""
    return hashlib.sha256(task).hexdigest()
