"""Which records belong to a reading, in the rounds that an attack chose and in other parts of the training."""

from __future__ import annotations

from typing import cast

import pytest

from fedarena.records.reading_names import belongs, name_in, names_of
from fedarena.records.schema import Record


def named(*readings: str) -> list[Record]:
    return [cast(Record, {"reading": reading}) for reading in readings]


@pytest.mark.parametrize(
    ("readings", "names"),
    [
        ([], []),
        ([""], [""]),
        (["", ""], [""]),
        (["", "upload"], ["upload"]),
        (["upload", "", "difference"], ["upload", "difference"]),
        (["", "other rounds"], ["", "other rounds"]),
        (["", "upload, other rounds"], ["", "upload, other rounds"]),
        (["upload", "other rounds", "upload, last rounds"], ["upload", "other rounds", "upload, last rounds"]),
        (["upload", "other rounds", "upload, other rounds"], ["upload", "upload, other rounds"]),
    ],
)
def test_each_part_has_names_of_its_own(readings: list[str], names: list[str]) -> None:
    assert names_of(named(*readings)) == names


@pytest.mark.parametrize(
    ("reading", "of"),
    [
        ("", ["", "upload", "difference"]),
        ("upload", ["upload"]),
        ("other rounds", ["other rounds", "upload, other rounds"]),
        ("last rounds", ["last rounds"]),
        ("upload, other rounds", ["upload, other rounds"]),
    ],
)
def test_a_record_without_a_name_stands_for_its_part_alone(reading: str, of: list[str]) -> None:
    every = ["", "upload", "difference", "other rounds", "upload, other rounds", "last rounds"]
    (record,) = named(reading)
    assert [name for name in every if belongs(record, name)] == of


def test_a_reading_has_its_part_in_its_name() -> None:
    assert [name_in("other rounds", name) for name in ("", "upload")] == ["other rounds", "upload, other rounds"]
