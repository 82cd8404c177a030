"""The measure of the quality of records' models."""

from __future__ import annotations

from collections.abc import Sequence

from fedarena.records.schema import Record


def measure_of(records: Sequence[Record]) -> str:
    """What the quality of these records' models is measured in: `accuracy`, or `R2`."""
    return records[0]["utility"]["measure"]
