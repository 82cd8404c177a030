"""The table of membership inference: its curves against scikit-learn's, and one small cut from end to end."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_curve

from fedarena.attack import Scores
from fedarena.reproduce import TABLES, membership_lira
from fedarena.reproduce.membership_lira import COLUMNS, DATA, MEASURED, PIECES, RATES, draw, measure, roc
from fedarena.rng import Rng


def test_every_piece_has_a_name_of_its_own() -> None:
    assert TABLES["membership/lira"] == membership_lira.__name__
    assert len(set(PIECES)) == len(PIECES) == 8


def test_shares_of_members_found_are_those_of_the_curve() -> None:
    generator = Rng(0).torch()
    members = torch.arange(3000) < 1000
    values = torch.randn(3000, generator=generator) + members
    false, true, _ = roc_curve(members.numpy(), values.numpy(), drop_intermediate=False)
    expected = [true[np.flatnonzero(false <= rate + 1e-9)[-1]] for rate in RATES]
    assert roc(Scores(values), members) == pytest.approx(expected)


def test_a_rate_below_one_stranger_has_no_share() -> None:
    found = roc(Scores(torch.arange(40.0)), torch.arange(40) >= 20)
    assert found == [None, None, None, None, 1.0, 1.0]


def test_one_cut_from_end_to_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(membership_lira, "ROUNDS", 60)
    told: list[float] = []
    rows = measure(DATA[0], "fedavg", None, 0, lambda share, text: told.append(share), shadows=2)
    assert told == sorted(told)
    kinds = [(r["statistic"], r["party"], r["form"]) for r in rows]
    lira = [("lira", party, form) for party in ("outsider", "client") for form in ("paper", "adaptive")]
    assert kinds == [("loss", "outsider", "-"), *lira]
    assert all(set(MEASURED) <= set(r) for r in rows)
    assert all(r["low_at_0.01"] <= r["tpr_at_0.01"] <= r["high_at_0.01"] for r in rows)
    assert {r["low_at_0.001"] for r in rows} == {None}, "there are fewer than a thousand strangers"
    assert {r["strangers"] for r in rows} == {r["strangers"] for r in rows[:1]}
    assert 100 <= rows[0]["strangers"] < 1000
    assert len({json.dumps([r[c] for c in ("auc", *COLUMNS)]) for r in rows}) == 5
    draw([{"seed": 0, **r} for r in rows], tmp_path / "roc.png")
    assert (tmp_path / "roc.png").read_bytes().startswith(b"\x89PNG")
