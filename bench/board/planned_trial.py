"""A trial that belongs on the board, with the records that it gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedarena.records.schema import Record
from fedarena.records.trial_place import TrialPlace


@dataclass(frozen=True, kw_only=True)
class PlannedTrial(TrialPlace):
    """A trial that belongs on the board.

    Attributes:
        records: the records of the trial; [] where they are missing.
        refused: why it cannot be run; empty for most.
        reference: whether it is the clean run of FedAvg that utility on this problem is measured against.
        counts: whether it counts in scores and ranks.
        utility: whether accuracy on its problem counts as utility.
    """

    records: Sequence[Record]
    refused: str = ""
    reference: bool = False
    counts: bool = True
    utility: bool = True
