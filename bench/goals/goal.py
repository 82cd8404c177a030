"""What a goal is: how an attack that has it is furnished, judged, scored and told of."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from fedarena.contracts.inference import Inference, Watch
from fedarena.contracts.observation import Reading
from fedarena.contracts.readings import all_readings
from fedarena.contracts.transcript import Seen
from fedarena.contracts.view import View
from fedarena.core.threat import FORM_MEANING, PARTIES, Form, NotApplicable, Party, Threat
from fedarena.goals.metrics.membership import TOGETHER
from fedarena.problem.batch import Batch

if TYPE_CHECKING:
    from fedarena.cli.output.pairing_table import Cell
    from fedarena.contracts.defense import Defense
    from fedarena.core.rng import Rng
    from fedarena.federation.finished_run import FinishedRun
    from fedarena.problem.problem import Problem
    from fedarena.records.record import Record
    from fedarena.runs.trial import GroupResult

Draw = Callable[[int, int], Batch | None]
"""(round, client) → the batch that the client works on; None: it draws as usual."""


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
        answers: what its answer is held against; the attack never gets it. Which type is the goal's business.
        metrics: what is known before the attack runs, such as how good a guess without it is.
        reason: why there is nothing to attack; then nothing is run.
        readings: how many a party attacks in this form. The one that leaks most is shown, which the judge picks and
            nobody could know before; an interval that is to stand beside it has to hold for all of them together.
    """

    reading: str
    view: View | None
    answers: Any = None
    metrics: dict[str, float] = field(default_factory=dict)
    reason: str = ""
    readings: int = 1


@dataclass(frozen=True)
class Wording:
    """One goal in words.

    Attributes:
        metric: what a cell is told by; a cell with more of it is worse for the defender.
        tie: decides between cells that have the same.
        undefended, defended: how a sentence begins; {attack} and {defense} are filled in, and outcomes follow.
        outcome: a cell's in a few words.
        adaptive: what sets the adaptive form apart.
    """

    metric: str
    tie: str
    undefended: str
    defended: str
    outcome: Callable[[Cell], str]
    adaptive: str = "matched through the protocol"


class Goal(ABC):
    """What an attack is after. It has no state: everything is in what it is handed."""

    parties: ClassVar[tuple[Party, ...]] = PARTIES
    """Who can have it."""

    of_data: ClassVar[bool] = True
    """Whether what leaks tells of the clients' data, so that it counts where privacy is scored. The server's model,
    which most protocols give away by design, and a gradient, which is only a step on the way, stand beside."""

    undefended: ClassVar[Form] = "adaptive"
    """The form in which the run without a defense is read, for comparison, where both are asked for."""

    forms_differ: ClassVar[bool] = False
    """Whether attacks do something else in each form even where no defense stands between, so that each form is
    compared with its own."""

    def undefended_in(self, asked: Sequence[Form]) -> tuple[Form, ...]:
        """The forms in which the run without a defense is read, for comparison with those."""
        return tuple(asked) if self.forms_differ or len(asked) == 1 else (self.undefended,)

    def refuse(self, problem: Problem, attack: Inference) -> None:  # noqa: B027  (most refuse nothing)
        """Refuse a problem that the attack cannot be run on at all, before anything is trained. Raises UserError."""

    def draws(self, problem: Problem, attack: Inference, watch: Watch, rng: Rng) -> Draw | None:
        """What clients work on, where the experiment says so; None: they draw as usual."""
        return None

    @abstractmethod
    def challenges(
        self, finished: FinishedRun, sights: PartyTranscript, attack: Inference
    ) -> Sequence[Challenge] | NotApplicable:
        """One for each way in which a party looks at what it saw, or why there is none."""

    @abstractmethod
    def judge(self, answer: Any, challenge: Challenge) -> dict[str, float]:
        """What the answer is worth. Any exception makes the trial a failed one."""

    @abstractmethod
    def leak(self, metrics: Mapping[str, float]) -> float:
        """The advantage over guessing; what is beyond [0, 1] is cut off."""

    def pictures(self, answer: Any, challenge: Challenge) -> tuple[Tensor, Tensor] | None:
        """Originals and guesses [n, channels, height, width] to be drawn; None: nothing."""
        return None

    def series(self, answer: Any, challenge: Challenge) -> dict[str, list[list[float]]]:
        """What is worth keeping beside the metrics, as [x, y] by name, x the round where nothing else is said; part of
        the record."""
        return {}

    def draw(self, results: Sequence[GroupResult], defense: str, attack: str, path: Path) -> Path | None:
        """The picture of a pairing, written as a PNG; None: there is nothing to draw.

        By default the originals and guesses of `pictures`.
        """
        from fedarena.cli.output.pairing_pictures import draw_guesses

        return draw_guesses(results, defense, attack, path)

    # -- in words --------------------------------------------------------------------------------------

    @abstractmethod
    def wording(self, metrics: Sequence[str]) -> Wording:
        """How it is told of, where these metrics were measured."""

    @abstractmethod
    def lines(self, cell: Cell) -> list[str]:
        """A cell of the table."""

    @abstractmethod
    def baseline(self, records: Sequence[Record]) -> list[str]:
        """Sentences under the table: what guessing reaches, and on how many questions."""

    def guessing(self, records: Sequence[Record]) -> str:
        """A clause of the verdict: how good a guess is that sees nothing; empty where the table has said it."""
        return ""

    @abstractmethod
    def given(self, problem: Problem, defense: Defense, sights: PartyTranscript, attack: Inference) -> str:
        """For `bench explain`: what the attack gets of the first round that it is after."""


def given_of_readings(
    defense: Defense,
    sights: PartyTranscript,
    attack: Inference,
    more: Callable[[Sequence[Reading]], str] = lambda r: "",
    owned: str = "the half of the held-out data",
) -> str:
    """`Goal.given` of goals that work on readings.

    Args:
        more: a further line about the readings.
        owned: where the samples of an attack that has some come from.
    """
    readings = all_readings(defense, sights.threat, sights.seen, sights.victims)
    if isinstance(readings, NotApplicable):
        return f"n/a: {readings.reason}"
    why = [attack.unreadable(r.observations[0]) for r in readings]
    if all(why):
        return f"n/a: {'; '.join(dict.fromkeys(why))}"
    told = [f"{r.name}: {target_of(r.observations[0].target)}" for r in readings]
    told.append(f"({FORM_MEANING[sights.threat.form]})")
    told += ["and the victims' labels"] if attack.knows_labels else []
    told += [f"and samples of its own, from {owned}"] if attack.knows_population else []
    return "\n".join([*told, *([line] if (line := more(readings)) else [])])


def target_of(target: Mapping[str, Tensor]) -> str:
    """How much was seen."""
    return f"{len(target)} tensors, {sum(t.numel() for t in target.values()):,} numbers"


# -- pieces of sentences -------------------------------------------------------------------------------


def percent_of(name: str) -> Callable[[Cell], str]:
    """A share in whole percent."""
    return lambda c: f"{100 * c.metrics[name].value:.0f} %"


def interval(c: Cell, name: str) -> tuple[float, float] | None:
    """The 95 % interval of a share, or None.

    Of one seed it is the judge's. Of several it is Student's over them, or what the judge's intervals of each leave
    open of their mean, on either side a √seeds-th of their mean width, where that is wider: seeds that happen to agree,
    as all do near certainty, make nothing certain. Of several readings it is the one that holds for all of them.
    """
    kind = TOGETHER if f"{name}_low{TOGETHER}" in c.metrics else ""
    value, low, high = c.metrics[name], c.value(f"{name}_low{kind}"), c.value(f"{name}_high{kind}")
    share, half = math.sqrt(value.seeds), value.half or 0.0
    if low is None or high is None:
        return None if value.half is None else (max(0.0, value.value - half), min(1.0, value.value + half))
    below, above = max(half, (value.value - low) / share), max(half, (high - value.value) / share)
    return max(0.0, value.value - below), min(1.0, value.value + above)


def auc(c: Cell, unclear: str = "") -> str:
    """AUC with its interval, and where chance lies in that, `unclear`."""
    value, ends = f"AUC {c.metrics['auc'].value:.2f}", interval(c, "auc")
    if ends is None:
        return value
    return f"{value} ({ends[0]:.2f} to {ends[1]:.2f}{unclear if ends[0] <= 0.5 <= ends[1] else ''})"


def values(records: Sequence[Record], name: str) -> list[float]:
    """A metric of the records that have it."""
    return [r["metrics"][name] for r in records if name in r["metrics"]]


def average(records: Sequence[Record], name: str) -> float:
    """Its mean over them."""
    return fmean(values(records, name))


def span(numbers: Sequence[float]) -> str:
    """'12', or '12 to 1,200'."""
    low, high = f"{min(numbers):,.0f}", f"{max(numbers):,.0f}"
    return low if low == high else f"{low} to {high}"


def above(value: float, prior: float) -> float:
    """The share of what a guess leaves open; 0 where it leaves nothing."""
    return (value - prior) / (1 - prior) if prior < 1 else 0.0
