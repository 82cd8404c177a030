"""A sample that is seen whole is judged by the same equations as one that is seen through a matrix."""

from __future__ import annotations

import pytest
import torch

from fedarena.attacks.reconstruction.helpers.first_layer import Affine
from fedarena.attacks.reconstruction.helpers.image_distribution import GaussianImages


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
