"""Specifications as plain data: training runs, and the trials that read them or take part in them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from fedarena.contracts.baseline import BASELINE
from fedarena.core.options import NoOptions
from fedarena.core.rng import root
from fedarena.core.threat import Form, Party, Threat
from fedarena.problem.spec import ProblemSpec


@dataclass(frozen=True)
class MethodSpec:
    """A defense or an attack with its options.

    Attributes:
        name, options: a protocol; or an attack, the outermost one.
        rest: the further parts, outermost first: a protocol's aggregation rule with its wrappers, or the attacks that
            an attack wraps (`fedarena.federation.compose`).
    """

    name: str
    options: Any = field(default_factory=NoOptions)
    rest: tuple[MethodSpec, ...] = ()

    @property
    def label(self) -> str:
        """The name in tables and records. FedAvg with a rule has the name of the rule alone."""
        names = [self.name, *(part.name for part in self.rest)]
        return "+".join(names[1:] if names[0] == BASELINE and len(names) > 1 else names)

    @property
    def bare(self) -> MethodSpec:
        """The same, with options that hold their fields alone, whatever a method has attached to them."""
        options = object.__new__(type(self.options))
        for one in fields(self.options):
            object.__setattr__(options, one.name, getattr(self.options, one.name))
        return MethodSpec(self.name, options, tuple(part.bare for part in self.rest))


@dataclass(frozen=True)
class TranscriptFolder:
    """Where the rounds that are written down are kept (`fedarena.records.transcript_files`).

    Attributes:
        folder: holds a folder for each run.
        truth: whether the clients' samples are kept beside them.
    """

    folder: Path
    truth: bool = False


@dataclass(frozen=True)
class GroupSpec:
    """One training run and the cells that read it.

    Attributes:
        problem, defense: the problem and the protocol of the training.
        attack: an inference attack, which reads the run under every threat; a poisoning attack, which takes part in
            it under the one threat given; None: a run without an attack.
        threats: the threats under which the attack is run.
        seed: all randomness follows from it, and from the secret if there is one.
        device: cpu or cuda.
        data_dir: where data files are looked for (not part of a record's key; their checksum is).
        probe: for a run without an attack, the backdoor whose trigger is tried on its model for comparison.
        secret: what makes the randomness one that a method from another package cannot guess; empty: nothing does.
        other_rounds: whether the attack reads as many rounds elsewhere in the training, too.
        transcript: where the rounds that the attack reads are kept as files; None: nowhere. It changes no result.
    """

    problem: ProblemSpec
    defense: MethodSpec
    attack: MethodSpec | None
    threats: tuple[Threat, ...]
    seed: int
    device: str = "cpu"
    data_dir: Path | None = None
    probe: MethodSpec | None = None
    secret: str = ""
    other_rounds: bool = False
    transcript: TranscriptFolder | None = None

    @property
    def root(self) -> int:
        """The number from which all randomness follows."""
        return root(self.seed, self.secret)


@dataclass(frozen=True)
class Training:
    """All that the result of a training run depends on. Groups with equal trainings share one run.

    Attributes:
        problem, defense, seed, device, data_dir, secret: as in `GroupSpec`.
        under: the attack that takes part in the training, or that prescribes batches; None: neither.
        knows: what corrupted clients know; empty if no client is corrupted.
        probe: the backdoor that is tried on the finished model, for reference runs only.
        alone: whether what its parties reach alone was measured with it, for reference runs only.
    """

    problem: ProblemSpec
    defense: MethodSpec
    seed: int
    device: str
    data_dir: Path | None
    under: MethodSpec | None = None
    knows: str = ""
    probe: MethodSpec | None = None
    alone: bool = False
    secret: str = ""

    @property
    def poisoned(self) -> bool:
        """Whether corrupted clients take part."""
        return bool(self.knows)


def training_under(spec: GroupSpec, under: MethodSpec | None = None, knows: str = "") -> Training:
    """The run of a group, with the attack that takes part in it, if one does."""
    return Training(
        problem=spec.problem,
        defense=spec.defense,
        seed=spec.seed,
        device=spec.device,
        data_dir=spec.data_dir,
        under=under,
        knows=knows,
        secret=spec.secret,
    )


def threats(parties: tuple[Party, ...], forms: tuple[Form, ...]) -> tuple[Threat, ...]:
    """Every party in every form, parties first."""
    return tuple(Threat(party, form) for party in parties for form in forms)
