"""The measure of the quality of records' models."""

from __future__ import annotations

from fedarena.records.measure import measure_of


def test_records_that_do_not_say_have_accuracies() -> None:
    assert measure_of([{"utility": {}}]) == "accuracy"
    assert measure_of([{"utility": {"measure": "R2"}}]) == "R2"
