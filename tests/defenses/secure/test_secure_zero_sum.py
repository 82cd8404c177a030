"""Float masks: how exact the sum is, and what the server can tell apart."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from helpers.secure import uniform
from scipy.stats import norm

from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.defenses.secure.cards.zero_sum import CARD, Options
from fedarena.defenses.secure.zero_sum import ZeroSum


def test_masks_sum_to_zero_and_have_the_spread() -> None:
    for spread in (0.01, 1.0, 50.0):
        masks = ZeroSum(Options(spread)).deal(5, 20_000, Rng(0))
        assert float(masks.sum(0).abs().max()) < 1e-14 * spread
        torch.testing.assert_close(masks.std(1), torch.full((5,), spread).double(), rtol=0.03, atol=0.0)
        assert float(masks.mean(1).abs().max()) < 0.03 * spread


def test_an_exchange_is_vectors_plus_masks() -> None:
    x = torch.randn(4, 30, generator=torch.Generator().manual_seed(0))
    secure = ZeroSum(Options(2.0))
    done, again, other = secure(x, Rng(0)), secure(x, Rng(0)), secure(x, Rng(1))
    masks = secure.deal(4, 30, Rng(0).child("dealer"))
    assert torch.equal(done.wire, x + masks.float())
    assert torch.equal(done.wire, again.wire)
    assert (done.wire != other.wire).all()
    torch.testing.assert_close(done.total, x.sum(0), rtol=0, atol=1e-5)
    assert (done.survivors, done.extra_up, done.extra_down) == ((0, 1, 2, 3), 0.0, 120.0)
    assert secure(x.double(), Rng(0)).extra_down == 240.0


@pytest.mark.parametrize("spread", [1e-3, 1.0])
@pytest.mark.parametrize(("dtype", "grid"), [(torch.float32, 2.0**-25), (torch.float64, 2.0**-54)])
def test_the_sum_is_off_by_the_grid_of_the_masks(dtype: torch.dtype, grid: float, spread: float) -> None:
    """Loss differences of 1e-4 under masks of 1: seven digits of float32 end at 1e-7, whatever the vectors' size."""
    n, g = 10, torch.Generator().manual_seed(0)
    x = (1e-4 / n * torch.randn(n, 20_000, generator=g, dtype=torch.float64)).to(dtype)
    found = ZeroSum(Options(spread))(x, Rng(0)).total
    truth = torch.tensor([math.fsum(column) for column in x.double().T.tolist()], dtype=torch.float64)
    error = float((found.double() - truth).square().mean().sqrt())
    assert 1 < error / (grid * spread * math.sqrt(n)) < 4


@pytest.mark.parametrize("distance", [0.5, 2.0])
def test_the_server_tells_vectors_apart_as_often_as_it_must(distance: float) -> None:
    """Whose vector is whose, of two: Φ(‖V − V'‖ / (2 · spread · √(n/(n−1)))), far from 1/2 for long vectors."""
    n, d, trials, spread = 4, 8, 1500, 0.5
    one = torch.zeros(n, d, dtype=torch.float64)
    one[0] = distance / math.sqrt(d)
    other = one[[1, 0, 2, 3]]
    secure, right = ZeroSum(Options(spread)), 0
    for seed in range(trials):
        wire = secure(one, Rng(seed)).wire
        right += bool(((wire - (one + other) / 2) * (one - other)).sum() > 0)
    expected = norm.cdf(math.sqrt(2) * distance / (2 * spread * math.sqrt(n / (n - 1))))
    assert expected > 0.7
    assert right / trials == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / trials))


def test_repeating_a_vector_wears_the_masks_off() -> None:
    """The mean of R rounds is off by spread / √R."""
    x = torch.randn(3, 4000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    secure, rounds = ZeroSum(Options(10.0)), 100
    mean = sum((secure(x, Rng(seed)).wire for seed in range(rounds)), torch.zeros_like(x)) / rounds
    error = float((mean - x).square().mean().sqrt())
    assert error == pytest.approx(10.0 / math.sqrt(rounds), rel=0.03)  # 8,000 free values: 0.8 % is one deviation


def test_an_upload_is_not_uniform() -> None:
    wire = ZeroSum(Options())(torch.zeros(3, 5000), Rng(0)).wire
    assert uniform(wire[0].numpy().view(np.uint32)) < 1e-100


def test_a_missing_upload_leaves_its_mask() -> None:
    """Nothing recovers it: the sum over the others is off by the whole of the missing mask."""
    x = torch.zeros(5, 4000, dtype=torch.float64)
    wire = ZeroSum(Options(3.0))(x, Rng(0)).wire
    assert float(wire[1:].sum(0).std()) == pytest.approx(3.0, rel=0.05)


def test_the_card_leads_here_and_one_participant_is_refused() -> None:
    assert CARD.load() is ZeroSum
    with pytest.raises(UserError, match=r"option 'spread' is 0\.0"):
        CARD.parse({"spread": "0"})
    with pytest.raises(UserError, match="secure zero-sum: 1 participants a round, allowed: 2 or more"):
        ZeroSum(Options()).check(1)


def test_parts_may_share_one_mask_and_then_differ_in_clear():
    vectors = torch.randn(4, 12, generator=Rng(0).torch(), dtype=torch.float64)
    shared, own = (ZeroSum(Options(repeat=parts))(vectors, Rng(1)) for parts in (3, 1))
    first, second, third = (shared.wire - vectors).split(4, dim=1)
    assert torch.allclose(first, second)
    assert torch.allclose(second, third)
    assert first.abs().min() > 1e-3
    assert torch.allclose(shared.total, vectors.sum(0))
    a, b, _ = shared.wire.split(4, dim=1)
    x, y, _ = vectors.split(4, dim=1)
    assert torch.allclose(a - b, x - y)
    a, b, _ = own.wire.split(4, dim=1)
    assert (a - b - x + y).abs().mean() > 0.1
    assert shared.extra_down * 3 == own.extra_down
    assert (ZeroSum(Options(repeat=3)).repeat, ZeroSum(Options()).repeat) == (3, 1)


def test_parts_must_be_equal():
    with pytest.raises(UserError, match="option 'repeat' is 3, allowed: a divisor of 10"):
        ZeroSum(Options(repeat=3))(torch.zeros(2, 10), Rng(0))
