"""The words of an inference goal: its sentences, the lines of its cells, and what its attacks are given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedarena.contracts.defense import Defense
from fedarena.contracts.inference import Inference
from fedarena.contracts.observation import Reading
from fedarena.contracts.readings import all_readings
from fedarena.core.threat import FORM_MEANING, NotApplicable
from fedarena.goals.challenge import PartyTranscript
from fedarena.goals.phrases import target_of

if TYPE_CHECKING:
    from fedarena.goals.cell import Cell
    from fedarena.problem.problem import Problem
    from fedarena.records.schema import Record


@dataclass(frozen=True)
class Wording:
    """The verdict's words for one goal.

    Attributes:
        metric: the metric that stands for a cell; a cell with a higher value is worse for the defender.
        tie: the metric that decides between cells that have the same.
        undefended, defended: how a sentence begins; {attack} and {defense} are filled in, and outcomes follow.
        outcome: a cell's outcome in a few words.
        adaptive: what sets the adaptive form apart.
    """

    metric: str
    tie: str
    undefended: str
    defended: str
    outcome: Callable[[Cell], str]
    adaptive: str = "matched through the protocol"


class GoalText(ABC):
    """The words of an inference goal. It has no state."""

    @abstractmethod
    def wording(self, metrics: Sequence[str]) -> Wording:
        """The verdict's words, where these metrics were measured."""

    @abstractmethod
    def lines(self, cell: Cell) -> list[str]:
        """The lines of a cell of the table."""

    @abstractmethod
    def baseline(self, records: Sequence[Record]) -> list[str]:
        """Sentences under the table. They say what guessing reaches, and on how many questions."""

    def guessing(self, records: Sequence[Record]) -> str:
        """A clause of the verdict that says how good a blind guess is; empty where the table has said it."""
        return ""

    @abstractmethod
    def given(
        self, problem: Problem, defense: Defense, transcript: PartyTranscript, attack: Inference
    ) -> str | NotApplicable:
        """What the attack gets of the first round that it is after, or why it cannot start."""


def given_of_readings(
    defense: Defense,
    transcript: PartyTranscript,
    attack: Inference,
    more: Callable[[Sequence[Reading]], str] = lambda r: "",
    owned: str = "the half of the held-out data",
) -> str | NotApplicable:
    """`GoalText.given` of goals that work on readings.

    Args:
        more: a further line about the readings.
        owned: where the samples of an attack that has some come from.
    """
    readings = all_readings(defense, transcript.threat, transcript.seen, transcript.victims)
    if isinstance(readings, NotApplicable):
        return readings
    why = [attack.unreadable(r.observations[0]) for r in readings]
    if all(why):
        return NotApplicable("; ".join(dict.fromkeys(why)))
    lines = [f"{r.name}: {target_of(r.observations[0].target)}" for r in readings]
    lines.append(f"({FORM_MEANING[transcript.threat.form]})")
    lines += ["and the victims' labels"] if attack.knows_labels else []
    lines += [f"and samples of its own, from {owned}"] if attack.knows_population else []
    return "\n".join([*lines, *([line] if (line := more(readings)) else [])])
