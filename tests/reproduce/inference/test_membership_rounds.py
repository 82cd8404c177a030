"""The table of membership by all rounds, in one small cut from end to end."""

from __future__ import annotations

import pytest
from helpers.paths import DATA

from fedarena.problem.schedule import Schedule
from fedarena.reproduce.inference import membership_rounds
from fedarena.reproduce.inference.membership_rounds import ATTACKS, COLUMNS, FEDERATIONS, MEASURED, Federation, measure
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.tables import TABLES

SHORT = Federation(
    "mlp", "pairwise-masks", samples=10, schedule=Schedule(rounds=6, batch_size=5, local_epochs=1, lr=0.1)
)


def test_every_piece_has_a_name_of_its_own() -> None:
    assert TABLES["inference/membership-rounds"] == membership_rounds.__name__
    assert len({*membership_rounds.TABLE.pieces}) == len(FEDERATIONS) == 8


AGAINST_OTHERS = ("fedmia", "fedmia-loss")
"""What compares a client with others, which a sum does not show one by one."""


def test_one_cut_from_end_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ATTACKS, "lira", ("membership-inference", {"shadows": "2"}))  # type: ignore[attr-defined]
    told: list[float] = []
    rows = measure(SHORT, Machine(data_dir=DATA), 0, lambda share, text: told.append(share))
    assert told == sorted(told)
    assert [r["attack"] for r in rows] == list(ATTACKS)
    for row in rows:
        assert {*MEASURED} <= {*row}
        if row["attack"] in AGAINST_OTHERS:
            assert row["auc"] is row["outsiders"] is None
            assert str(row["note"]).startswith("n/a: statistic=")
            continue
        assert row["outsiders"] == 100
        assert row["auc_low"] <= row["auc"] <= row["auc_high"]
        resolved = {column for column in COLUMNS if row[column] is not None}
        assert resolved == {column for column in COLUMNS if "0.001" not in column}, "one of a hundred is 1 %"
