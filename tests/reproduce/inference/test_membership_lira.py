"""The table of membership inference: its curves against scikit-learn's, and one small cut from end to end."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.membership_models import group, prepared
from sklearn.metrics import roc_curve

from fedarena.contracts.inference import Scores
from fedarena.core.rng import Rng
from fedarena.goals.prepared import OpenRecord
from fedarena.problem.problem import build
from fedarena.reproduce.inference import membership_lira
from fedarena.reproduce.inference.membership_lira import (
    COLUMNS,
    DATA,
    MEASURED,
    MEMBERS,
    NOBODYS,
    RATES,
    among_nobodys,
    draw,
    measure,
    roc,
)
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.tables import TABLES


def test_every_piece_has_a_name_of_its_own() -> None:
    assert TABLES["membership/lira"] == membership_lira.__name__
    assert len(set(membership_lira.TABLE.pieces)) == len(membership_lira.TABLE.pieces) == 8


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
    monkeypatch.setattr(membership_lira, "ROUNDS", 30)
    told: list[float] = []
    rows = measure(DATA[0], "fedavg", Machine(), 0, lambda share, text: told.append(share), shadows=2)
    assert told == sorted(told)
    kinds = [(r["statistic"], r["party"], r["form"], r["asked"]) for r in rows]
    plain = [("loss", "outsider", "-"), ("lira", "outsider", "paper")]
    others = [("lira", "outsider", "adaptive"), ("lira", "client", "paper"), ("lira", "client", "adaptive")]
    assert kinds == [(*k, asked) for asked in (MEMBERS, NOBODYS) for k in plain] + [(*k, MEMBERS) for k in others]
    assert all(set(MEASURED) <= set(r) for r in rows)
    assert all(r["low_at_0.01"] <= r["tpr_at_0.01"] <= r["high_at_0.01"] for r in rows)
    assert {r["low_at_0.001"] for r in rows} == {None}, "there are fewer than a thousand strangers"
    assert all(r["auc_low"] < r["auc"] < r["auc_high"] for r in rows)
    assert {r["strangers"] for r in rows if r["asked"] == MEMBERS} == {rows[0]["strangers"]}
    assert 100 <= rows[0]["strangers"] < 1000
    assert len({json.dumps([r[c] for c in ("auc", *COLUMNS)]) for r in rows}) == 7
    draw([{"seed": 0, **r} for r in rows], tmp_path / "roc.png")
    assert (tmp_path / "roc.png").read_bytes().startswith(b"\x89PNG")


def test_those_in_the_members_place_are_held_by_nobody() -> None:
    (cell,) = prepared(group(rounds=2))
    assert isinstance(cell, OpenRecord)
    null = among_nobodys(problem := build(group(rounds=2).problem, 0), 0, cell.challenge)
    assert null.view is not None
    asked = null.view.candidates
    assert asked is not None
    held = problem.inputs(torch.cat(problem.shards)).flatten(1)
    nearest = torch.cdist(asked.x.flatten(1), held).amin(1)
    assert (nearest > 0).all()
    assert not null.metrics
    counts = [asked.y[which].bincount(minlength=10).tolist() for which in (null.answers, ~null.answers)]
    assert counts[0] == counts[1]
