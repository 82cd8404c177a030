"""What the corrupted clients draw from their own data."""

import pytest
import torch

from fedarena.contracts.poisoning import PERMUTED, Samples
from fedarena.core.rng import Rng


def pool(size: int) -> Samples:
    """Sample i has the class i and the one pixel i mod 256."""
    at = torch.arange(size)
    return Samples((at % 256).to(torch.uint8)[:, None], at, 255.0)


@pytest.mark.parametrize("size", [PERMUTED, PERMUTED + 1], ids=["small", "large"])
def test_draws_are_distinct_repeatable_and_reach_everything(size: int) -> None:
    data, n = pool(size), size // 2
    x, y = data.draw(n, Rng(3))
    again, other = data.draw(n, Rng(3))[1], data.draw(n, Rng(4))[1]
    assert len(y.unique()) == n
    assert torch.equal(x[:, 0], (y % 256).float() / 255)
    assert torch.equal(y, again)
    assert not torch.equal(y, other)
    # Half of two halves of a pool, chosen without regard to each other, is in both, and either end as often.
    assert abs(torch.isin(y, other).float().mean() - 0.5) < 0.05
    assert abs((y < size / 2).float().mean() - 0.5) < 0.05
    # A single draw, as each attacker makes in each round, favours neither end.
    ones = torch.cat([data.draw(1, Rng(i))[1] for i in range(200)])
    assert 0.35 < (ones < size / 2).float().mean() < 0.65


@pytest.mark.parametrize("size", [5, PERMUTED + 1], ids=["small", "large"])
def test_no_more_is_drawn_than_there_is(size: int) -> None:
    assert torch.equal(pool(size).draw(size + 7, Rng(0))[1].sort().values, torch.arange(size))
