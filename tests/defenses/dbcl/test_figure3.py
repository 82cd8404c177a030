"""DBCL's Figure 3 in real training: what its options miss and the smoother finds."""

from __future__ import annotations

from fedarena.reproduce.dbcl.figure3 import CASES, OWN, measure
from fedarena.reproduce.machine import Machine


def test_options_find_nothing_and_the_smoother_everything() -> None:
    case = CASES[0]
    assert (case.dataset, case.clients, case.schedule.rounds) == ("digits", 2, 60)
    told: list[float] = []
    rows = {row["estimator"]: row for row in measure(case, Machine(), 0, lambda share, text: told.append(share))}
    assert all(row["estimates"] == 2 * 59 for row in rows.values())
    for option in ("option-I", "option-II"):
        assert abs(float(str(rows[option]["cosine"]))) <= 0.1
        assert float(str(rows[option]["error"])) > 10
    assert float(str(rows["smoother"]["cosine"])) >= 0.99
    assert float(str(rows["smoother"]["error"])) < 0.05 * float(str(rows[OWN]["error"]))
    assert told == sorted(told)
    assert 0 < told[-1] <= 1
