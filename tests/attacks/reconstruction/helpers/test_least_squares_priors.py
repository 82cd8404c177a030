"""Fewer numbers than pixels: what is known of images decides among those that explain them all."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from sklearn.covariance import LedoitWolf
from torch import Tensor
from torch.func import grad

from fedarena.attacks.reconstruction.cards.dlg import Options
from fedarena.attacks.reconstruction.dlg import DLG
from fedarena.attacks.reconstruction.helpers.image_distribution import GaussianImages
from fedarena.attacks.reconstruction.helpers.matching import Coordinates, total_variation
from fedarena.contracts.observation import Observation
from fedarena.contracts.view import Population, View
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import Threat

NONE = torch.zeros(1, 2)


class Measured:
    """m numbers of the 64 pixels."""

    def __init__(self, m: int) -> None:
        self.a = torch.randn(m, 64, generator=torch.Generator().manual_seed(0)) / 8

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        return {"numbers": self.a @ x.flatten()}


def blocks() -> Tensor:
    """A dark image with a bright and a grey block."""
    x = torch.zeros(1, 1, 8, 8)
    x[..., 1:5, 1:4], x[..., 4:7, 5:8] = 1.0, 0.5
    return x


def black_and_white() -> Tensor:
    """Pixels at the ends of the range, without a thought for their neighbours."""
    return torch.randint(0, 2, (1, 1, 8, 8), generator=torch.Generator().manual_seed(1)).float()


def error(x: Tensor, m: int, **options: Any) -> float:
    """The largest error of a pixel."""
    measured = Measured(m)
    seen = Observation(
        0, clients=(0,), images=1, target=measured(x, NONE), simulate=measured, labels=torch.zeros(1, dtype=torch.int64)
    )
    view = View(
        Threat("server", "adaptive"), reading="numbers", input_shape=(1, 8, 8), n_classes=2, observations=(seen,)
    )
    chosen = Options(labels="given", restarts=2, iterations=1500, tolerance=0, **options)
    guess = DLG(chosen)(view, Rng(0), lambda share, text: None)
    assert isinstance(guess, list)
    return float((guess[0].images - x).abs().max())


def test_the_image_of_least_variation_is_found_by_lowering_its_weight() -> None:
    x = blocks()
    without, heavy = error(x, 40), error(x, 40, tv=1.0)
    lowered = error(x, 40, tv=1.0, decades=4)
    assert lowered < 0.01
    assert heavy > 5 * lowered, "a prior of some weight pulls away from the truth"
    assert without > 0.2, "and without one 40 numbers do not determine 64 pixels"


def test_the_range_of_pixels_makes_fewer_numbers_suffice() -> None:
    """64 pixels at the ends of [0, 1]: half as many numbers and some more leave one such image, with odds."""
    x = black_and_white()
    assert error(x, 52, outside=100.0) < 0.05 < 0.2 < error(x, 52)


def test_the_corner_of_the_total_variation_is_round() -> None:
    x = torch.rand(2, 1, 5, 6, dtype=torch.float64)
    plain = x.diff(dim=-1).abs().mean() + x.diff(dim=-2).abs().mean()
    assert total_variation(x) == pytest.approx(float(plain), rel=1e-12)
    assert total_variation(x, 1e-3) == pytest.approx(float(plain), abs=2e-3)
    assert total_variation(x, 1e-3) < plain
    flat = torch.zeros(1, 1, 5, 6, dtype=torch.float64)
    assert float(total_variation(flat, 1e-3)) == 0
    slope = grad(lambda z: total_variation(z, 1e-3))(flat + 1e-6 * x[:1])
    assert float(slope.abs().max()) < 1e-3


def test_a_weight_of_nothing_cannot_be_lowered() -> None:
    with pytest.raises(UserError, match=r"option 'decades' is 2, allowed: 0 without a weight 'tv' or 'unlikely'"):
        error(blocks(), 40, decades=2, prior="none")


def likely(n: int, seed: int) -> Tensor:
    """Samples [n, 1, 8, 8] of N(½, C) with C of rank 12."""
    rng = torch.Generator().manual_seed(seed)
    basis = torch.randn(12, 64, generator=torch.Generator().manual_seed(5)) / 40
    return (0.5 + torch.randn(n, 12, generator=rng) @ basis).reshape(n, 1, 8, 8)


@pytest.mark.parametrize(
    "weight", [{"unlikely": 0.0}, {"unlikely": 0.1, "decades": 4, "init": "normal"}], ids=["span", "weight"]
)
def test_a_prior_of_own_samples_finds_the_likeliest_fitting_image(weight: dict[str, Any]) -> None:
    """For linear measurements that is the mean of the Gaussian law given them, μ + C Aᵀ (A C Aᵀ)⁻¹ (r − A μ)."""
    own, x = likely(400, 1), likely(1, 2)
    measured = Measured(20)
    seen = Observation(
        0, clients=(0,), images=1, target=measured(x, NONE), simulate=measured, labels=torch.zeros(1, dtype=torch.int64)
    )
    population = Population(own, torch.zeros(400, 2))
    view = View(
        Threat("server", "adaptive"),
        reading="numbers",
        input_shape=(1, 8, 8),
        n_classes=2,
        observations=(seen,),
        population=population,
    )
    chosen = Options(labels="given", restarts=1, iterations=1500, tolerance=0, prior="population", **weight)
    assert DLG(chosen).needs_population
    assert not DLG(Options(prior="none")).needs_population, "who has no use for samples is given none"
    guess = DLG(chosen)(view, Rng(0), lambda share, text: None)
    assert isinstance(guess, list)
    found = guess[0].images.flatten().double()
    law = GaussianImages.of(own.flatten(1))
    a, r = measured.a.double(), seen.target["numbers"].double()
    expected = law.mean + law.covariance @ a.T @ torch.linalg.solve(a @ law.covariance @ a.T, r - a @ law.mean)
    assert float((found - expected).abs().max()) < 0.01
    assert float((found - x.flatten()).abs().max()) < 0.05, "20 numbers suffice where images have 12 dimensions"
    assert error(x, 20) > 0.2, "and do not where nothing is known of them"


@pytest.mark.parametrize("shape", [(50, 6), (5, 64), (12, 1000), (10, 1003)])
def test_the_distribution_is_scikit_learn_s_to_the_last_bit(shape: tuple[int, int]) -> None:
    """Which takes its sums by blocks of 1,000 pixels."""
    x = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    law, theirs = GaussianImages.of(x), LedoitWolf(store_precision=False).fit(x.double().numpy())
    assert (law.mean.numpy() == theirs.location_).all()
    assert (law.covariance.numpy() == theirs.covariance_).all()


def test_coordinates_whiten_the_samples_they_are_made_of() -> None:
    own = torch.rand(50, 1, 2, 3, generator=torch.Generator().manual_seed(0))
    coordinates = Coordinates.of(own)
    law = GaussianImages.of(own.flatten(1))
    assert torch.allclose(coordinates.images(torch.zeros(2, 1, 2, 3)), law.mean.to(own).reshape(1, 1, 2, 3))
    assert torch.allclose((law.root() @ law.root()), law.covariance, atol=1e-10)
    z = torch.randn(4, 1, 2, 3, generator=torch.Generator().manual_seed(1))
    back = (coordinates.images(z).flatten(1) - coordinates.mean) @ torch.linalg.inv(coordinates.root)
    assert torch.allclose(back, z.flatten(1), atol=1e-4)
