"""The task of an inference attack, and what the judge keeps for judging it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fedarena.contracts.transcript import Seen
from fedarena.contracts.view import View
from fedarena.core.threat import Threat


@dataclass(frozen=True)
class PartyTranscript:
    """A threat and what it saw: the material of its challenges.

    Attributes:
        threat: the party and its form.
        seen: what it saw of each round, by the round's number.
        victims: the rounds that the attack is after.
    """

    threat: Threat
    seen: Mapping[int, Seen]
    victims: Sequence[int]


@dataclass(frozen=True)
class Challenge:
    """One attack's task, and what the judge keeps for judging it.

    Attributes:
        reading: the name of the reading that it comes from, or of the model that is attacked.
        view: all that the attack gets.
        answers: the truth that the attack's answer is compared with; the attack never gets it. Its type depends on the
            goal.
        metrics: what is known before the attack runs, such as how good a guess without it is.
        readings: how many readings a party attacks in this form. The judge shows the one that leaks most, which no
            attacker could know in advance. An interval beside it must therefore hold for all of them.
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
