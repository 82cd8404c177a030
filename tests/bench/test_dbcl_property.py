"""`bench reproduce dbcl/property`, in small."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from fedarena.reproduce.dbcl_property import CASES, PIECES, Case, measure
from fedarena.schedule import Schedule

SMALL = replace(
    CASES[0],
    options=(("widths", "16"),),
    attack=(("rounds", "8"), ("round_batches", "3")),
    schedule=Schedule(rounds=10, batch_size=16, lr=0.1),
)


def test_one_row_for_each_reading_form_and_kind_of_features_beside_the_paper_s_numbers() -> None:
    rows = measure(SMALL, "dbcl", None, 0, lambda share, text: None)
    readings = [(r["attacker"], r["reading"], r["features"], r["paper"]) for r in rows if r["form"] == "paper"]
    parts = {"server": ["expanded"], "client": ["option-I", "option-II"]}
    paper = {"server": 0.726, "client": 0.5}
    assert readings == [
        (party, name + clear, kind, None if clear else paper[party])
        for party, names in parts.items()
        for name in names
        for clear in ("", ", in clear")
        for kind in ("code", "margins", "slopes")
    ]
    adaptive = [(r["attacker"], r["reading"]) for r in rows if r["form"] == "adaptive"]
    assert adaptive == [
        *(("server", name) for name in ("upload", "upload, in clear")),
        *(("client", name) for name in ("smoother", "smoother, in clear")),
    ]
    assert {r["features"] for r in rows if r["form"] == "adaptive"} <= {"best: slopes", "best: others"}
    for row in rows:
        assert 0 <= float(str(row["low"])) <= float(str(row["auc"])) <= float(str(row["high"])) <= 1
    by_kind = [
        [r["auc"] for r in rows if r["features"] == kind and r["form"] == "paper"]
        for kind in ("code", "margins", "slopes")
    ]
    assert all(a != b for a, b in itertools.combinations(by_kind, 2))


def test_forms_that_are_not_measured_are_said() -> None:
    small = replace(SMALL, forms=("paper",), left_out="because")
    *rows, last = measure(small, "fedavg", None, 0, lambda share, text: None)
    assert {r["form"] for r in rows} == {"paper"}
    assert (last["form"], last["reading"], last["auc"]) == ("adaptive", "because", None)


@pytest.mark.parametrize("case", CASES)
def test_every_federation_is_measured_with_sketches_and_without(case: Case) -> None:
    assert {f"{case.title}: fedavg", f"{case.title}: dbcl"} <= set(PIECES)
