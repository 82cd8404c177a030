"""What an inference attack is set, and what the judge keeps of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fedarena.contracts.transcript import Seen
from fedarena.contracts.view import View
from fedarena.core.threat import Threat


@dataclass(frozen=True)
class PartyTranscript:
    """A threat and what it saw, for which challenges are to be made.

    Attributes:
        threat: the party and its form.
        seen: the rounds that it saw, by number.
        victims: the rounds that the attack is after.
    """

    threat: Threat
    seen: Mapping[int, Seen]
    victims: Sequence[int]


@dataclass(frozen=True)
class Challenge:
    """One attack's task, and what the judge keeps of it.

    Attributes:
        reading: which way of looking it comes from, or which model is attacked.
        view: all that the attack gets.
        answers: what its answer is held against; the attack never gets it. Its type is the goal's own.
        metrics: what is known before the attack runs, such as how good a guess without it is.
        readings: how many readings a party attacks in this form. The one that leaks most is shown, which the judge
            picks and nobody could know before; an interval that is to stand beside it has to hold for all of them.
    """

    reading: str
    view: View
    answers: Any = None
    metrics: dict[str, float] = field(default_factory=dict)
    readings: int = 1


@dataclass(frozen=True)
class NoChallenge:
    """A reading in which there is nothing to attack, and why."""

    reading: str
    reason: str
