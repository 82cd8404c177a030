"""The output layer at which one sample stands alone, by draws from samples of one's own."""

from __future__ import annotations

import pytest
import torch

from fedarena.attacks.reconstruction.helpers.lone_sample import Ridge, alone, best_cut, shares


def data(m: int = 60, d: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(m) % 3
    return torch.randn(m, d, generator=generator, dtype=torch.float64) + 4 * torch.eye(3, d)[y].double(), y


def test_left_out_scores_are_those_of_fits_without_the_sample() -> None:
    """By refitting with a weight of 0 for it: the closed form against the slow one."""
    x, y = data(20)
    side = (y == 0).double() * 2 - 1
    way = Ridge.on(x).direction(side)
    assert torch.allclose(x @ way.u + way.constant, side, atol=0.9)
    z = torch.nn.functional.pad((x - x.mean(0)) / x.std(0), (0, 1), value=1.0)
    ridge = 1e-2 * (z @ z.T).diagonal().mean() * torch.eye(6).double()
    for i in (0, 7):
        rest = torch.arange(20) != i
        w = torch.linalg.solve(z[rest].T @ z[rest] + ridge, z[rest].T @ side[rest])
        assert float(way.scores[i]) == pytest.approx(float(z[i] @ w), abs=1e-9)


def test_shares_are_how_far_the_softmax_is_from_the_label() -> None:
    z, member = torch.tensor([0.0, 3.0, -4.0], dtype=torch.float64), torch.tensor([True, False, False])
    p = z.exp() / (z.exp() + 9)
    assert torch.allclose(shares(z, member, 10).double(), (p - member.double()).abs(), atol=1e-6)


def test_a_sample_is_alone_with_nearly_all_of_the_shares() -> None:
    share = torch.tensor([1.0, 0.01, 0.5, 0.0])
    draws = torch.tensor([[0, 1], [0, 2], [1, 3], [3, 3]])
    assert alone(share, draws) == 0.5


def test_a_feature_cut_isolates_more_often_than_a_class() -> None:
    """Of 12 samples of three classes a class has four in the mean."""
    x, y = data()
    rows = torch.zeros(3, 5)
    cut = {v: best_cut(x, y, rows, 12, v, torch.Generator().manual_seed(1)) for v in ("class", "feature", "automatic")}
    assert cut["class"].alone < 0.3
    assert cut["feature"].alone > cut["class"].alone + 0.2
    assert cut["automatic"].alone == cut["feature"].alone
    assert bool(cut["feature"].row.any())
