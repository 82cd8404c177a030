"""The contract of a goal: its threats, the runs that it is measured against, its scores and its table.

There are two kinds. An attack that reads a finished run has an `InferenceGoal` (`fedarena.goals.inference_goal`). An
attack that takes part in the run has the goal `Integrity` (`fedarena.goals.integrity`).
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
    from fedarena.federation.replay import Replays
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
    """The threats that an attack can pose, or that are wanted; () stands for what does not apply, or for all.

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
    """A row of `bench explain`: a party in one form, or with one level of knowledge, and what it has.

    Attributes:
        party: who it is.
        form: its form, or what it knows.
        sees: what it sees of the training.
        given: which part of it the attack is given, or why the attack cannot start.
    """

    party: str
    form: str
    sees: str
    given: str


class Goal(ABC):
    """What an attack is after. A goal has no state: its methods depend on their arguments alone."""

    axis: ClassVar[Axis]
    """The score that trials with this goal have."""

    of_data: ClassVar[bool] = True
    """Whether its trials count in the score. The privacy score is about the clients' data. The server's model, which
    most protocols give away by design, and a gradient, which is only an intermediate step, do not count. Neither do
    pictures of classes: a model that was trained without any client's data shows them too. Nor does what a server reads
    that does not follow the protocol: scores are about parties that do."""

    finds_other_rounds: ClassVar[bool] = False
    """Whether its attacks can read other rounds than they chose (`fedarena.contracts.inference.Watch.elsewhere`)."""

    idle_options: ClassVar[Mapping[str, str]] = {}
    """Options of a pairing that have no effect on such an attack → the reason. Giving one of them is an error."""

    # -- what is played --------------------------------------------------------------------------------

    @abstractmethod
    def choices(self, attack: MethodSpec) -> Choices:
        """The threats that the attack can pose."""

    @abstractmethod
    def threats(self, attack: MethodSpec, wanted: Choices) -> tuple[Threat, ...]:
        """Every threat that is wanted and possible, in the order in which they are wanted."""

    def undefended(self, threats: tuple[Threat, ...]) -> tuple[Threat, ...]:
        """The threats that the run without a defense is attacked with, for comparison with these."""
        return threats

    def undefended_choices(self, wanted: Choices) -> Choices:
        """The choices for the run without a defense where a suite makes these choices."""
        return wanted

    @abstractmethod
    def check_options(self, attack: MethodSpec, owner: str, threats: Sequence[Threat]) -> None:
        """Refuse options of the attack that act on none of the threats. Raises UserError that begins with `owner`."""

    def require_attackers(self, spec: ProblemSpec, attack: MethodSpec) -> None:  # noqa: B027  (most need none)
        """Raise UserError for a problem in which no client could attack."""

    @abstractmethod
    def require_runnable(self, spec: ProblemSpec, problem: Problem, protocol: Defense, attack: MethodSpec) -> None:
        """Raise UserError for an attack that refuses the problem or the protocol.

        Args:
            problem: built from `spec`. protocol: made for the problem.
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
        """The runs that a group is measured against: its own defense's clean run, and FedAvg's."""

    def play(
        self, spec: GroupSpec, problem: Problem, defense: Defense, replays: Replays, progress: Progress
    ) -> list[CompleteRecord] | None:
        """Train and judge a group whose attack takes part in the training; None where it reads a finished run.

        Args:
            replays: remembers some calls of the defense.
        """
        return None

    # -- how it is scored and shown --------------------------------------------------------------------

    @abstractmethod
    def scores(self, metrics: Mapping[str, float], utility: Mapping[str, Any]) -> dict[str, float]:
        """The scores in [0, 1] of a trial that gave a result. Raises KeyError for a missing metric."""

    def add_reference(self, record: Record, own: Record) -> None:  # noqa: B027  (inference needs no clean run)
        """Fill in the fields that follow from the same defense's clean run."""

    @abstractmethod
    def why_not(self, threat: Threat, attack: MethodSpec, problem: Problem, protocol: Defense, run: Run) -> str:
        """Why the attack could not start after a short run without it; empty where it could."""

    @abstractmethod
    def explain(self, problem: Problem, protocol: Defense, run: Run, attack: MethodSpec) -> list[PartyFacts]:
        """Every party that attacks, and what it sees and is given in a short run."""

    @abstractmethod
    def table(self, records: Sequence[Record], defense: str, attack: str) -> PairingTable:
        """The records of a pairing as a table with its verdict and remarks."""

    @abstractmethod
    def figure(self, results: Sequence[GroupResult], defense: str, attack: str) -> Figure | None:
        """The picture of a pairing; None where there is nothing to draw."""


def wanted_of(possible: tuple[Any, ...], wanted: tuple[Any, ...]) -> tuple[Any, ...]:
    """What is both wanted and possible, in the order wanted. If nothing is wanted, everything that is possible."""
    return tuple(one for one in wanted or possible if one in possible)


def without_attack(spec: GroupSpec, probe: MethodSpec | None = None) -> GroupSpec:
    """The same group without corrupted clients."""
    return replace(spec, attack=None, threats=(), probe=probe)
