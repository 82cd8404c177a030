"""Noise on gradients: its moments, and that its size is public."""

from __future__ import annotations

import pytest
import torch
from helpers.changed_uploads import make, read, sent_and_plain

from fedarena.core.rng import Rng
from fedarena.core.tensors import rows


@pytest.mark.parametrize(("law", "kurtosis"), [("gaussian", 3), ("laplacian", 6)])
def test_noise_has_the_moments_of_its_law(law, kurtosis):
    defense = make("gradient-noise", law=law, std=0.2)
    (one,) = defense.draw(Rng(0)).values()
    z = torch.cat([next(iter(defense.draw(Rng(i)).values())) for i in range(2000)]).double()
    assert len(one) == defense.entries
    assert abs(float(z.mean())) < 0.002
    assert float(z.std()) == pytest.approx(0.2, rel=0.01)
    assert float((z / z.std()).pow(4).mean()) == pytest.approx(kurtosis, rel=0.03)


def test_an_upload_is_the_gradient_and_the_client_s_own_noise():
    defense = make("gradient-noise", std=0.2)
    _, ups, plain = sent_and_plain(defense)
    drawn = [next(iter(defense.draw(Rng(0).child("noise", c)).values())) for c in range(3)]
    assert torch.allclose(rows(ups) - rows(plain), torch.stack(drawn), atol=1e-5)


@pytest.mark.parametrize(("party", "size"), [("server", 0.2), ("client", 0.2 * (40**2 + 40**2) ** 0.5 / 80)])
def test_the_size_of_the_noise_is_public(party, size):
    (observed,) = read(make("gradient-noise", std=0.2), party, "adaptive")[0].observations
    assert observed.noise_std == pytest.approx(size)
