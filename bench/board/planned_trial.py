"""A trial that belongs on the board, with the records that it gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedarena.records.schema import Record


@dataclass(frozen=True)
class PlannedTrial:
    """A trial that belongs on the board.

    Attributes:
        problem, defense, attack, party, form, knows, goal, seed: what is run. The attack is `none` for a clean run.
        records: the records of the trial; [] where they are missing.
        refused: why it cannot be run; empty for most.
        reference: whether it is the clean run of FedAvg that utility on this problem is measured against.
        counts: whether it counts in scores and ranks.
        utility: whether accuracy on its problem counts as utility.
    """

    problem: str
    defense: str
    attack: str
    party: str
    form: str
    knows: str
    goal: str
    seed: int
    records: Sequence[Record]
    refused: str = ""
    reference: bool = False
    counts: bool = True
    utility: bool = True

    @property
    def clean(self) -> bool:
        """Whether the trial has no attack."""
        return self.attack == "none"

    @property
    def run(self) -> tuple[str, str]:
        """(problem, defense), which the clean run has in common with every attack on it."""
        return (self.problem, self.defense)

    @property
    def place(self) -> tuple[str, ...]:
        """What identifies the cell of the trial, which all its seeds share."""
        return (self.problem, self.defense, self.attack, self.party, self.form, self.knows)
