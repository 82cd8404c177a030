"""The threshold of what counts as recovered: the best guess without an upload passes in at most 5 % of the cases."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
from helpers.digit_views import digits
from scipy.stats import binom
from torch import Tensor

from fedarena.core.rng import Rng
from fedarena.goals.metrics import image_similarity as images
from fedarena.goals.metrics.calibration import passing_of, recovered_threshold
from fedarena.goals.metrics.real_samples import nearest_others


@dataclass(frozen=True)
class Stored:
    x: Tensor
    scale: float = 1.0


def test_nearest_neighbours_of_other_samples_pass_in_at_most_five_percent() -> None:
    x = digits()[0]
    threshold = recovered_threshold(Stored(x))
    nearest, _ = nearest_others(x, Stored(x))
    share = float((images.ssim(nearest.double(), x) > threshold).double().mean())
    assert 0.005 < share <= 0.05
    assert float((images.ssim(nearest.double(), x) > 0.9).double().mean()) > 0.4  # a fixed threshold would pass these


def test_the_threshold_does_not_depend_on_how_pixels_are_stored() -> None:
    x = digits()[0]
    assert recovered_threshold(Stored((x * 16).to(torch.uint8), 16.0)) == pytest.approx(recovered_threshold(Stored(x)))


def test_the_nearest_sample_is_found_as_one_by_one() -> None:
    x = digits()[0][:300]
    nearest, distances = nearest_others(x[:20], Stored(x))
    for i in range(20):
        slow = [math.inf if j == i else float((x[i] - x[j]).double().square().sum()) for j in range(300)]
        assert torch.equal(nearest[i], x[slow.index(min(slow))].double())
        assert float(distances[i]) == pytest.approx(min(slow), abs=1e-3)


def test_copies_are_nobody_s_neighbours() -> None:
    x = digits()[0][:50].clone()
    x[10:20] = x[0]
    nearest, _ = nearest_others(x[:1], Stored(x))
    assert not torch.equal(nearest[0], x[0])
    same = Stored(x[:1].expand(5, -1, -1, -1))
    assert recovered_threshold(same) == -1
    assert nearest_others(same.x, same)[1].isinf().all()


def test_rows_of_a_table_are_held_to_a_mean_squared_error() -> None:
    x = torch.rand(500, 6, generator=Rng(0).torch())
    threshold = recovered_threshold(Stored(x))
    nearest, _ = nearest_others(x, Stored(x))
    share = float((images.mse(nearest, x) < threshold).double().mean())
    assert 0 < threshold < 1 / 6
    assert share <= 0.05
    assert recovered_threshold(Stored(x[:1])) == math.inf


@pytest.mark.parametrize("n", [1, 20, 59, 93, 200, 400])
def test_as_many_pass_as_confidence_allows(n: int) -> None:
    k = passing_of(n)
    assert k == 0 or binom.cdf(k, n, 0.05) <= 0.05
    assert binom.cdf(k + 1, n, 0.05) > 0.05
