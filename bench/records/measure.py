"""The measure of the quality of records' models."""

from __future__ import annotations

from collections.abc import Sequence

from fedarena.records.schema import Record


def measure_of(records: Sequence[Record]) -> str:
    """What the quality of these records' models is; one that does not say has accuracies."""
    return str(records[0]["utility"].get("measure", "accuracy"))
