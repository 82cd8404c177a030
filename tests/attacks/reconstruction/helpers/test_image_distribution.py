"""How likely what was seen is, and how much of a sample it leaves open, beside torch's normal distribution.

A sample that is seen whole is judged by the same equations as one that is seen through a matrix.
"""

from __future__ import annotations

import pytest
import torch
from torch.distributions import MultivariateNormal

from fedarena.attacks.reconstruction.helpers.first_layer import Affine
from fedarena.attacks.reconstruction.helpers.image_distribution import GaussianImages, LeastNorm

GENERATOR = torch.Generator().manual_seed(0)
ROOT, MEAN, A, C = (torch.randn(*shape, generator=GENERATOR).double() for shape in ((6, 6), (6,), (3, 6), (3,)))
PRIOR, OF, VARIANCE = GaussianImages(MEAN, ROOT @ ROOT.T), Affine(A, C), 0.3
OF_SEEN = MultivariateNormal(A @ MEAN + C, A @ PRIOR.covariance @ A.T + VARIANCE * torch.eye(3).double())


def test_surprise_is_a_density_up_to_a_constant() -> None:
    one, other = torch.randn(2, 3, generator=torch.Generator().manual_seed(1)).double()
    theirs = OF_SEEN.log_prob(other) - OF_SEEN.log_prob(one)
    ours = PRIOR.surprise(one, OF, VARIANCE) - PRIOR.surprise(other, OF, VARIANCE)
    assert ours == pytest.approx(float(theirs))


def test_what_is_left_open_is_the_posterior_variance() -> None:
    """By adding precisions: (C⁻¹ + AᵀA/λ)⁻¹."""
    posterior = torch.linalg.inv(torch.linalg.inv(PRIOR.covariance) + A.T @ A / VARIANCE)
    assert PRIOR.left_open(OF, VARIANCE) == pytest.approx(float(posterior.trace() / PRIOR.covariance.trace()))


def test_without_a_distribution_each_equation_closes_a_pixel() -> None:
    rows = torch.linalg.qr(A.T).Q.T
    assert LeastNorm().left_open(Affine(rows, C), 1e-12) == pytest.approx(0.5, abs=1e-5)


def test_without_a_distribution_the_shorter_sample_is_likelier() -> None:
    assert LeastNorm().surprise(C, OF, VARIANCE) < LeastNorm().surprise(C + 1, OF, VARIANCE)


@pytest.mark.parametrize("variance", [0.0, 1e-3, 0.1])
def test_the_short_way_for_whole_samples_is_the_long_way(variance: float) -> None:
    draws = torch.Generator().manual_seed(0)
    law = GaussianImages.of(torch.rand(40, 30, generator=draws))
    zero = torch.zeros(30).double()
    outside = 0
    for _ in range(5):
        seen = torch.rand(30, generator=draws).double() * 1.2 - 0.1
        whole = law(seen, Affine(None, zero), variance)
        assert torch.equal(whole, law(seen, Affine(torch.eye(30).double(), zero), variance))
        outside += int(((whole == 0) | (whole == 1)).any() or ((seen < 0) | (seen > 1)).any())
    assert outside, "some sample leaves [0, 1], and its pixels are fixed at the ends"
