"""The measure of the quality of records' models."""

from __future__ import annotations

from fedarena.records.measure import measure_of


def test_the_measure_is_that_of_the_records() -> None:
    assert measure_of([{"utility": {"measure": "accuracy"}}]) == "accuracy"
    assert measure_of([{"utility": {"measure": "R2"}}]) == "R2"
