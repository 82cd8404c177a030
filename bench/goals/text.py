"""The words of an inference goal: its sentences, the lines of its cells, and what its attacks are given."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from torch import Tensor

from fedarena.contracts import server_step
from fedarena.contracts.defense import Defense
from fedarena.contracts.inference import Inference
from fedarena.contracts.observation import Reading
from fedarena.contracts.readings import all_readings
from fedarena.core.binomial import TOGETHER
from fedarena.core.text.numbers import Mean, percent
from fedarena.core.threat import FORM_MEANING, NotApplicable
from fedarena.goals.challenge import PartyTranscript
from fedarena.goals.pairing_table import Cell
from fedarena.records.schema import Record

if TYPE_CHECKING:
    from fedarena.goals.pairing_table import Cell
    from fedarena.problem.problem import Problem
    from fedarena.records.schema import Record


@dataclass(frozen=True)
class Wording:
    """The verdict's words for one goal.

    Attributes:
        metric: the main metric of a cell; a cell with a higher value is worse for the defender.
        tie: the metric that decides between cells with the same main metric.
        outcome: a cell's outcome in a few words.
        finds: what the attack does, as the predicate of a sentence in which {outcome} is filled in.
    """

    metric: str
    tie: str
    outcome: Callable[[Cell], str]
    finds: str


class GoalText(ABC):
    """The words of an inference goal. It has no state."""

    @abstractmethod
    def wording(self, metrics: Sequence[str]) -> Wording:
        """The verdict's words, for records with these metrics."""

    @abstractmethod
    def lines(self, cell: Cell) -> list[str]:
        """The lines of a cell of the table."""

    @abstractmethod
    def baseline(self, records: Sequence[Record]) -> list[str]:
        """Sentences below the table. They say what guessing reaches, and over how many samples or rounds."""

    def given(
        self, problem: Problem, defense: Defense, transcript: PartyTranscript, attack: Inference
    ) -> str | NotApplicable:
        """What the attack gets of the first attacked round, or why it cannot start; by default its readings."""
        return given_of_readings(defense, transcript, attack)


def given_of_readings(
    defense: Defense,
    transcript: PartyTranscript,
    attack: Inference,
    more: Callable[[Sequence[Reading]], str] = lambda r: "",
    owned: str = "the half of the held-out data",
) -> str | NotApplicable:
    """`GoalText.given` for goals that work on readings.

    Args:
        more: a further line about the readings.
        owned: the source of the attack's own samples, if it has some.
    """
    readings = all_readings(defense, transcript.threat, transcript.seen, transcript.victims)
    if isinstance(readings, NotApplicable):
        return readings
    why = [attack.unreadable(r.observations[0]) for r in readings]
    if all(why):
        return NotApplicable("; ".join(dict.fromkeys(why)))
    lines = [f"{r.name}: {target_of(r.observations[0].target)}{_matched(r)}{_beside(r)}" for r in readings]
    lines.append(f"({FORM_MEANING[transcript.threat.form]})")
    lines += ["and the victims' labels"] if attack.needs_labels else []
    lines += [f"and samples of its own, from {owned}"] if attack.needs_population else []
    return "\n".join([*lines, *([line] if (line := more(readings)) else [])])


def _matched(reading: Reading) -> str:
    """How attacks match a reading that does not go through the client step in the adaptive form."""
    return ", matched with the plain gradient" if reading.name == server_step.NAME else ""


def _beside(reading: Reading) -> str:
    """How much the client sent beside what is matched."""
    statistics = reading.observations[0].statistics
    return "" if statistics is None else f", beside it batch statistics: {target_of(statistics.target)}"


def target_of(target: Mapping[str, Tensor]) -> str:
    """How much was seen: the number of tensors and of numbers."""
    return f"{len(target)} tensors, {sum(t.numel() for t in target.values()):,} numbers"


def percent_of(name: str) -> Callable[[Cell], str]:
    """A share in whole percent, with its interval where the judge gave one."""
    return lambda c: rate(c.metrics, name) if f"{name}_low" in c.metrics else f"{100 * c.metrics[name].value:.0f} %"


def rate(metrics: Mapping[str, Mean], name: str) -> str:
    """A share with its interval: "7 % (3 to 12 %)".

    Where the judge gave no interval it is that over seeds: "7 ± 3 %".
    """
    if f"{name}_low" not in metrics:
        return percent(metrics[name])
    ends, value = interval(metrics, name), f"{100 * metrics[name].value:.0f} %"
    return value if ends is None else f"{value} ({100 * ends[0]:.0f} to {100 * ends[1]:.0f} %)"


def interval(metrics: Mapping[str, Mean], name: str) -> tuple[float, float] | None:
    """The 95 % interval of a share, from a cell's metrics, or None.

    For one seed it is the judge's interval. For several it is Student's interval over seeds, or the judge's intervals
    combined (on either side their mean width over √seeds), whichever is wider: seeds that agree by chance must not give
    a narrow interval. For several readings it is the interval that holds for all of them. Where the judge gave none, as
    in old records, seeds that agree have no interval.
    """
    kind = TOGETHER if f"{name}_low{TOGETHER}" in metrics else ""
    value, low, high = metrics[name], metrics.get(f"{name}_low{kind}"), metrics.get(f"{name}_high{kind}")
    share, half = math.sqrt(value.seeds), value.half or 0.0
    if low is None or high is None:
        return (max(0.0, value.value - half), min(1.0, value.value + half)) if half else None
    below, above = max(half, (value.value - low.value) / share), max(half, (high.value - value.value) / share)
    return max(0.0, value.value - below), min(1.0, value.value + above)


def auc(c: Cell, unclear: str = "") -> str:
    """The AUC with its interval, and the words `unclear` if the interval holds chance."""
    value, ends = f"AUC {c.metrics['auc'].value:.2f}", interval(c.metrics, "auc")
    if ends is None:
        return value
    return f"{value} ({ends[0]:.2f} to {ends[1]:.2f}{unclear if ends[0] <= 0.5 <= ends[1] else ''})"


def values(records: Sequence[Record], name: str) -> list[float]:
    """The values of a metric, for the records that have it."""
    return [r["metrics"][name] for r in records if name in r["metrics"]]


def average(records: Sequence[Record], name: str) -> float:
    """The mean of a metric over the records that have it."""
    return fmean(values(records, name))


def span(numbers: Sequence[float]) -> str:
    """'12', or '12 to 1,200'."""
    low, high = f"{min(numbers):,.0f}", f"{max(numbers):,.0f}"
    return low if low == high else f"{low} to {high}"
