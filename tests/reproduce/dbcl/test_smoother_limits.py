"""Where the smoother of neighbours' sketches stops: each piece changes one thing, and what it changes is measured."""

from __future__ import annotations

from pathlib import Path

from helpers.paths import DATA

from fedarena.reproduce.dbcl.smoother_limits import CASES, CHANGES, MEASURED, TABLE, measure
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.table import Row


def rows(piece: str) -> dict[str, Row]:
    """The rows of a piece by form, on seed 0."""
    found = measure(CASES[piece], Machine(data_dir=DATA), 0, lambda share, text: None)
    assert all(set(MEASURED) <= set(row) for row in found)
    return {row["form"]: row for row in found}


def test_every_change_is_read_by_one_and_by_two() -> None:
    assert len(CASES) == 2 * len(CHANGES) == 2 * len({change.name for change in CHANGES})


def test_smaller_sketches_tell_less_and_two_readers_more(tmp_path: Path) -> None:
    usual, small, two = (
        rows(f"s/d: {ratio}, {members} of the neighbours") for ratio, members in ((0.5, 1), (0.125, 1), (0.5, 2))
    )
    assert usual["paper"]["cosine"] < small["adaptive"]["cosine"] < usual["adaptive"]["cosine"] < 0.9
    assert two["adaptive"]["cosine"] > 0.9
    assert usual["adaptive"]["identified"] < two["adaptive"]["identified"] == 1
    assert TABLE.draw is not None
    TABLE.draw([*usual.values(), *small.values(), *two.values()], tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_three_rounds_in_the_middle_tell_less_than_ten() -> None:
    three, ten = (rows(f"rounds read, from the 100th on: {n}, 1 of the neighbours")["adaptive"] for n in (3, 10))
    assert three["cosine"] < ten["cosine"]


def test_where_images_mean_nothing_only_the_cosine_is_measured() -> None:
    found = rows("momentum: 0.9, 2 of the neighbours")["adaptive"]
    assert found["identified"] is None
    assert 0.3 < found["cosine"] < 1
