"""A trial between its training and its record."""

from __future__ import annotations

from dataclasses import dataclass

from fedarena.core.threat import Threat
from fedarena.federation.spec import GroupSpec
from fedarena.goals.challenge import Challenge
from fedarena.records.schema import Record


@dataclass(frozen=True)
class CompleteTrial:
    """A trial with nothing left to attack.

    Attributes:
        spec, threat: the trial; no threat where nobody attacks.
        record: all that is known of it.
    """

    spec: GroupSpec
    threat: Threat | None
    record: Record


@dataclass(frozen=True)
class OpenTrial:
    """A trial as it stands before the attack, its challenge sealed off from the run.

    Attributes:
        spec, threat: the trial.
        challenge: what the attack gets and what the judge keeps.
        record: the record without the attack's metrics.
    """

    spec: GroupSpec
    threat: Threat
    challenge: Challenge
    record: Record


PreparedTrial = CompleteTrial | OpenTrial
