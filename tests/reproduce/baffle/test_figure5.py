"""Figure 5: statistics of known samples, noise of known moments, differences as the protocol defines them."""

from __future__ import annotations

import pytest
import torch

from fedarena.core.rng import Rng
from fedarena.defenses.baffle.directions import directions
from fedarena.problem.problem import Problem
from fedarena.reproduce.baffle import figure5
from fedarena.reproduce.baffle.figure5 import CRITICAL, GAUSSIAN, LAPLACIAN, START, TRAINED, Case, compared, measure
from fedarena.reproduce.machine import Machine

DIGITS = Case(data="digits", model="lenet-baffle", state=START, noise=GAUSSIAN)


def nothing(share: float, text: str) -> None:
    assert 0 <= share <= 1


def problem() -> Problem:
    return figure5._model(DIGITS, Machine(), 0, nothing)[0]


def test_samples_that_do_not_overlap_are_told_apart_by_every_statistic() -> None:
    found = compared(torch.arange(10.0, 20.0), torch.arange(0.0, 10.0))
    assert (found["ks"], found["auc"], found["auc_of_lengths"]) == (1.0, 1.0, 1.0)
    assert found["sd_real"] == found["sd_noise"] == pytest.approx(torch.arange(10.0).std().item())


def test_a_sample_is_not_told_from_itself_and_a_wider_one_by_lengths_alone() -> None:
    z = torch.randn(500, generator=Rng(0).torch())
    z = torch.cat([z, -z])
    assert (compared(z, z)["ks"], compared(z, z)["auc"]) == (0.0, 0.5)
    wider = compared(3 * z, z)
    assert wider["auc"] == pytest.approx(0.5)
    assert wider["auc_of_lengths"] > 0.7
    assert wider["ks"] > CRITICAL
    assert wider["ks_scaled"] < 0.01  # rounding alone


def test_one_in_twenty_pairs_of_one_law_exceeds_the_critical_value() -> None:
    assert pytest.approx(0.0859, abs=1e-4) == CRITICAL
    generator = Rng(1).torch()
    pairs = [compared(*torch.randn(2, figure5.COUNT, generator=generator))["ks"] for _ in range(400)]
    assert 0.02 < sum(ks > CRITICAL for ks in pairs) / 400 < 0.08


@pytest.mark.parametrize(("noise", "sd", "far"), [(GAUSSIAN, 1.0, 0.0027), (LAPLACIAN, 2**0.5, 0.0498)])
def test_noise_has_the_moments_of_its_distribution(noise: str, sd: float, far: float) -> None:
    case = Case(data="digits", model="lenet-baffle", state=START, noise=noise)
    batch = figure5._noise(problem(), case, Rng(0))
    assert batch.x.shape == (1, 32, 1, 32, 32)
    assert batch.x.mean().abs() < 0.03
    assert batch.x.std().item() == pytest.approx(sd, rel=0.02)
    assert (batch.x.abs() > 3).float().mean().item() == pytest.approx(far, abs=0.002)  # P(|z| > 3)
    assert len(batch.y.unique()) > 5


def test_noise_is_standard_behind_the_networks_normalisation() -> None:
    cifar = Case(data="cifar10", model="lenet-baffle", state=START, noise=GAUSSIAN)
    plain, scaled = (figure5._noise(problem(), case, Rng(0)).x for case in (DIGITS, cifar))
    torch.testing.assert_close((scaled - 0.4734) / 0.2009, plain)


def test_real_batches_share_no_image_and_differences_are_the_protocols(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figure5, "COUNT", 3)
    monkeypatch.setattr(figure5, "SIGMA", 0.1)
    given = problem()
    batch, other = figure5._real(given, Rng(0))
    images = torch.cat([batch.x[0], other.x[0]]).flatten(1)
    assert len(images.unique(dim=0)) == 64
    found = figure5._differences(given, given.init, batch, Rng(5))
    x, y = batch.images()
    here, n = given.task.loss(given.init, x, y), sum(p.numel() for p in given.init.values())
    for difference, z in zip(found, directions(Rng(5).integer(31), n), strict=False):
        parts = z.split([p.numel() for p in given.init.values()])
        moved = {name: p + 0.1 * part.view_as(p) for (name, p), part in zip(given.init.items(), parts, strict=True)}
        assert difference.item() == pytest.approx((given.task.loss(moved, x, y) - here).item(), rel=1e-3)


def test_a_case_is_measured_at_the_start_and_after_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figure5, "COUNT", 20)
    trained = Case(data="digits", model="lenet-baffle", state=TRAINED, noise=LAPLACIAN)
    (start,), (after,) = (measure(case, Machine(), 0, nothing) for case in (DIGITS, trained))
    assert set(figure5.MEASURED) <= set(start)
    assert after["accuracy"] > start["accuracy"]
    assert after["sd_real"] != start["sd_real"]
