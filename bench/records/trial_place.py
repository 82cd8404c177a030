"""The place of a trial among the others of a suite or a board."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, kw_only=True)
class TrialPlace:
    """What is run, by names.

    Attributes:
        problem, defense, attack, party, form, knows, goal, seed: as in records, but that a problem has the suite's name
            for it. A clean run has the attack `none` and no threat.
    """

    problem: str
    defense: str
    attack: str = "none"
    party: str = ""
    form: str = ""
    knows: str = ""
    goal: str = ""
    seed: int

    @property
    def clean(self) -> bool:
        """Whether the trial has no attack."""
        return self.attack == "none"

    @property
    def run(self) -> tuple[str, str]:
        """(problem, defense), which the clean run has in common with every attack on it."""
        return (self.problem, self.defense)

    @property
    def cell(self) -> tuple[str, ...]:
        """What identifies the cell of the trial, which all its seeds share."""
        return (self.problem, self.defense, self.attack, self.party, self.form, self.knows)

    def names(self) -> dict[str, Any]:
        """The fields of the place alone, without those of a subclass."""
        return {f.name: getattr(self, f.name) for f in fields(TrialPlace)}
