"""What a goal is: as whom an attack is played, against which runs it is measured, how it is scored and tabulated.

There are two kinds. An attack that reads a finished run has an `InferenceGoal` (`fedarena.goals.inference_goal`), one
that takes part in the run has `Integrity` (`fedarena.goals.integrity`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from fedarena.contracts.defense import Defense
from fedarena.core.threat import Form, Knowledge, Party, Threat
from fedarena.federation.spec import Training

if TYPE_CHECKING:
    from fedarena.federation.rounds import Run
    from fedarena.federation.spec import GroupSpec, MethodSpec
    from fedarena.goals.pairing_table import Figure, PairingTable
    from fedarena.goals.prepared import CompleteRecord
    from fedarena.problem.problem import Problem
    from fedarena.problem.spec import ProblemSpec
    from fedarena.records.results import GroupResult
    from fedarena.records.schema import Record

Axis = Literal["privacy", "integrity"]
"""A score by which defenses are ranked."""

Progress = Callable[[float, str], None]
"""Called with the share done in [0, 1] and a short text."""


@dataclass(frozen=True)
class Choices:
    """As whom an attack can be played, or is wanted to be; () stands for what does not apply, or for all.

    Attributes:
        parties: where a curious party sits.
        forms: the forms of the attack.
        knows: what corrupted clients know.
    """

    parties: tuple[Party, ...] = ()
    forms: tuple[Form, ...] = ()
    knows: tuple[Knowledge, ...] = ()


@dataclass(frozen=True)
class PartyFacts:
    """A row of `bench explain`: a party in one form, or with one knowledge, and what it has.

    Attributes:
        party: who it is.
        form: its form, or what it knows.
        sees: what it sees of the training.
        given: what the attack is given of that, or why it cannot start.
    """

    party: str
    form: str
    sees: str
    given: str


class Goal(ABC):
    """What an attack is after. It has no state: everything is in what it is handed."""

    axis: ClassVar[Axis]
    """The score that its trials have."""

    of_data: ClassVar[bool] = True
    """Whether its trials count in the score. Where privacy is scored, what leaks has to tell of the clients' data: the
    server's model, which most protocols give away by design, and a gradient, which is only a step on the way, stand
    beside."""

    idle_options: ClassVar[Mapping[str, str]] = {}
    """Options of a pairing that do nothing with such an attack, and why. Giving one of them is an error."""

    # -- what is played --------------------------------------------------------------------------------

    @abstractmethod
    def choices(self, attack: MethodSpec) -> Choices:
        """As whom the attack can be played."""

    @abstractmethod
    def threats(self, attack: MethodSpec, wanted: Choices) -> tuple[Threat, ...]:
        """Every threat that is wanted and can be played, in the order of what is wanted."""

    def undefended(self, threats: tuple[Threat, ...]) -> tuple[Threat, ...]:
        """The threats as which the run without a defense is attacked, to be compared with these."""
        return threats

    def undefended_choices(self, wanted: Choices) -> Choices:
        """What is wanted of the run without a defense where a suite wants this."""
        return wanted

    @abstractmethod
    def check_options(self, attack: MethodSpec, owner: str, threats: Sequence[Threat]) -> None:
        """Refuse options of the attack that act on none of the threats. Raises UserError that begins with `owner`."""

    def require_attackers(self, spec: ProblemSpec, attack: MethodSpec) -> None:  # noqa: B027  (most need nobody)
        """Raise UserError for a problem in which nobody could attack."""

    @abstractmethod
    def require_runnable(self, spec: ProblemSpec, problem: Problem, protocol: Defense, attack: MethodSpec) -> None:
        """Raise UserError for an attack that refuses the problem or the protocol.

        Args:
            problem, protocol: built from `spec` and made for it.
        """

    @abstractmethod
    def groups(self, spec: GroupSpec, threats: tuple[Threat, ...]) -> list[GroupSpec]:
        """The group with these threats, split into the training runs that it needs."""

    @abstractmethod
    def clean_runs(self, spec: GroupSpec) -> list[GroupSpec]:
        """The runs without an attack that a pairing needs beside the groups themselves."""

    @abstractmethod
    def references_beside(self, spec: GroupSpec) -> list[GroupSpec]:
        """The trials that a suite needs beside the clean runs of FedAvg and of the defense."""

    # -- what it is measured against -------------------------------------------------------------------

    @abstractmethod
    def training(self, spec: GroupSpec) -> Training:
        """The run that a group reads or takes part in."""

    @abstractmethod
    def references(self, spec: GroupSpec) -> tuple[Training, Training]:
        """What a group is measured against: its own defense's run that nobody poisons, and FedAvg's."""

    def play(
        self, spec: GroupSpec, problem: Problem, defense: Defense, progress: Progress
    ) -> list[CompleteRecord] | None:
        """Train and judge a group whose attack takes part in the training; None where it reads a finished run."""
        return None

    # -- how it is scored and told ---------------------------------------------------------------------

    @abstractmethod
    def scores(self, metrics: Mapping[str, float], utility: Mapping[str, Any]) -> dict[str, float]:
        """The scores in [0, 1] of a trial that gave a result. Raises KeyError for a metric that is not there."""

    def add_reference(self, record: Record, own: Record) -> None:  # noqa: B027  (inference needs nothing of it)
        """Fill in what follows from the same defense's run that nobody poisons."""

    @abstractmethod
    def why_not(self, threat: Threat, attack: MethodSpec, problem: Problem, protocol: Defense, run: Run) -> str:
        """Why the attack could not start after the rounds of a short run without it; empty where it could."""

    @abstractmethod
    def explain(self, problem: Problem, protocol: Defense, run: Run, attack: MethodSpec) -> list[PartyFacts]:
        """Every party that attacks, and what it sees and is given in a short run."""

    @abstractmethod
    def table(self, records: Sequence[Record], defense: str, attack: str) -> PairingTable:
        """The records of a pairing as a table with its verdict."""

    @abstractmethod
    def figure(self, results: Sequence[GroupResult], defense: str, attack: str) -> Figure | None:
        """The picture of a pairing; None where there is nothing to draw."""


def wanted_of(possible: tuple[Any, ...], wanted: tuple[Any, ...]) -> tuple[Any, ...]:
    """What is wanted and possible, in the order of what is wanted; all that is possible where nothing is wanted."""
    return tuple(one for one in wanted or possible if one in possible)


def without_attack(spec: GroupSpec, probe: MethodSpec | None = None) -> GroupSpec:
    """The same group with nobody corrupted."""
    return replace(spec, attack=None, threats=(), probe=probe)
