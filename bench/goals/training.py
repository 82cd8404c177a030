"""A training run as plain data: what its result follows from, and which run that is for a group."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fedarena.federation.spec import GroupSpec, MethodSpec
from fedarena.problem.spec import ProblemSpec


@dataclass(frozen=True)
class Training:
    """A training run, as far as its result follows from it. Groups that have the same one share it.

    Attributes:
        problem, defense, seed, device, data_dir: as in `GroupSpec`.
        under: the attack that takes part in it, or that says what clients work on; None where all do as always.
        knows: what corrupted clients know; empty where no client is corrupted.
        probe: the backdoor that the finished model is tried with, of references only.
    """

    problem: ProblemSpec
    defense: MethodSpec
    seed: int
    device: str
    data_dir: Path | None
    under: MethodSpec | None = None
    knows: str = ""
    probe: MethodSpec | None = None

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
    )
