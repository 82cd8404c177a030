"""More uploads than are worked on at a time: the same as all at once."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from fedarena.contracts.aggregator import Call
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.defenses.aggregators.coordinates import FEW, TOGETHER
from fedarena.defenses.aggregators.geometry import AT_ONCE, by_content, distances, geometry
from fedarena.defenses.aggregators.krum import ranking
from fedarena.defenses.aggregators.nnm import neighbours

MANY = 2 * AT_ONCE + 70


def uploads(n: int = MANY, d: int = 9, away: float = 0.0) -> Tensor:
    return torch.randn(n, d, generator=Rng(n).torch()) + away


@pytest.mark.parametrize("away", [0.0, 1e3])
def test_distances_are_those_of_all_pairs(away: float) -> None:
    x = uploads(away=away)
    true = (x.double()[:, None] - x.double()[None]).square().sum(-1).numpy()
    found = geometry(x)
    np.testing.assert_allclose(distances(x).squared, true, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(distances(x).squared, found.squared)
    about = found.gram.diagonal()
    np.testing.assert_allclose(about[:, None] + about[None] - 2 * found.gram, true, rtol=1e-3, atol=1e-3)
    assert (found.squared == found.squared.T).all()


def test_rows_whose_squares_overflow_keep_finite_distances() -> None:
    x = uploads(AT_ONCE + 3)
    x[-1] = 1e30
    squared = distances(x).squared
    assert np.isfinite(squared).all()
    assert (squared[-1, :-1] > 1e60).all()


def test_krum_orders_by_the_sum_of_the_nearest() -> None:
    rows, f = distances(uploads()), 300
    scores = np.sort(rows.squared, axis=1)[:, : MANY - f - 1].sum(axis=1)
    order = ranking(rows, f)
    assert sorted(order) == list(range(MANY))
    assert (np.diff(scores[order]) >= 0).all()


@pytest.mark.parametrize("tied", [False, True])
def test_nnm_mixes_the_nearest(tied: bool) -> None:
    x, f = uploads(), 300
    if tied:
        x[600:] = x[0]  # more equal rows than are mixed: what rows hold cannot part them, and any will do
    rows = distances(x)
    mixing = neighbours(rows, f)
    assert mixing.dtype == x.dtype
    assert ((mixing > 0).sum(1) == MANY - f).all()
    torch.testing.assert_close(mixing.sum(1), torch.ones(MANY))
    farthest = np.where(mixing.numpy() > 0, rows.squared, 0).max(1)
    left_out = np.where(mixing.numpy() > 0, np.inf, rows.squared).min(1)
    assert (farthest <= left_out).all()


def test_the_order_by_content_moves_with_the_rows() -> None:
    x = uploads()
    moved = torch.randperm(MANY, generator=Rng(0).torch())
    assert torch.equal(x[moved][by_content(x[moved]).tolist()], x[by_content(x).tolist()])


def test_coordinates_come_in_pieces_of_few_where_there_are_many_uploads() -> None:
    n, d, f = TOGETHER // FEW + 10, 3 * FEW + 1, 100
    x = uploads(n, d)
    call = Call(weights=torch.ones(n), f=f, memory={}, rng=Rng(0))
    found = {
        name: registry.find("aggregator", name).load()(None)(x, call).vector for name in ("median", "trimmed-mean")
    }
    ascending = np.sort(x.numpy(), axis=0)
    np.testing.assert_array_equal(found["median"].numpy(), np.median(ascending, axis=0))
    trimmed = ascending[f : n - f].mean(axis=0, dtype=np.float64)
    np.testing.assert_allclose(found["trimmed-mean"].numpy(), trimmed, atol=1e-6)
