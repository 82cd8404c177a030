"""What is to be run: a training run and the cells that read it, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedarena.cards import NoOptions
from fedarena.problem import ProblemSpec
from fedarena.threat import Form, Party, Threat


@dataclass(frozen=True)
class MethodSpec:
    """A defense or an attack with its options."""

    name: str
    options: Any = field(default_factory=NoOptions)


@dataclass(frozen=True)
class GroupSpec:
    """One training run and the cells that read it.

    Attributes:
        problem, defense, attack: what meets what.
        threats: the parties and forms to attack as.
        seed: everything random follows from it.
        device: cpu or cuda.
        data_dir: where data files are looked for (not part of a record's key; their checksum is).
    """

    problem: ProblemSpec
    defense: MethodSpec
    attack: MethodSpec
    threats: tuple[Threat, ...]
    seed: int
    device: str = "cpu"
    data_dir: Path | None = None


def threats(parties: tuple[Party, ...], forms: tuple[Form, ...]) -> tuple[Threat, ...]:
    """Every party in every form, parties first."""
    return tuple(Threat(party, form) for party in parties for form in forms)
