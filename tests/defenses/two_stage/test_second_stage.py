"""Algorithm 3's scores and selection against lists."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedarena.core.rng import Rng
from fedarena.defenses.two_stage.second_stage import counted, select, size


@given(scores=st.lists(st.integers(-50, 50), min_size=1, max_size=12), data=st.data())
def test_a_round_s_scores_are_those_of_the_paper(scores, data):
    k = data.draw(st.integers(1, len(scores)))
    mean = sum(sorted(scores, reverse=True)[:k]) / k
    found = counted(torch.tensor(scores, dtype=torch.float64), k).tolist()
    assert found == [s if s >= mean - 1e-12 else 0 for s in scores]


@given(totals=st.lists(st.integers(0, 6), min_size=1, max_size=12), data=st.data())
def test_the_largest_are_selected_and_ties_by_lot(totals, data):
    k = data.draw(st.integers(1, len(totals)))
    chosen = select(torch.tensor(totals, dtype=torch.float64), k, Rng(0))
    assert int(chosen.sum()) == k
    kept = [t for t, c in zip(totals, chosen.tolist(), strict=True) if c]
    assert sorted(kept, reverse=True) == sorted(totals, reverse=True)[:k]


def test_the_lot_favours_nobody():
    counts = sum(select(torch.tensor([0.0, 0.0, 5.0, 0.0]), 2, Rng(i)).double() for i in range(3000))
    assert counts[2] == 3000
    assert all(abs(float(counts[i]) - 1000) < 5 * math.sqrt(3000 * 2 / 9) for i in (0, 1, 3))


@pytest.mark.parametrize(
    ("n", "clients", "assumed_corrupted", "gamma", "ceil", "floor"),
    [
        (50, 50, 30, None, 20, 20),  # 1 − 30/50 is a little above 0.4 in floating point
        (10, 10, 3, 0.7, 7, 7),
        (10, 10, 0, 0.35, 4, 3),
        (7, 20, 12, None, 3, 2),  # 0.4·7 = 2.8
        (3, 20, 19, None, 1, 1),  # never nobody
        (5, 20, 0, None, 5, 5),
        (5, 20, 0, 1.0, 5, 5),
    ],
)
def test_how_many_are_selected(n, clients, assumed_corrupted, gamma, ceil, floor):
    assert size(n, clients, assumed_corrupted, gamma, whole=False) == ceil
    assert size(n, clients, assumed_corrupted, gamma, whole=True) == floor
