"""A client's step is an affine map of its sample, which comes back through sketches, masks and loss differences."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from helpers import malicious
from hypothesis import given
from hypothesis import strategies as st

from fedarena.goals.metrics.reconstruction import reconstruction_metrics

SMALL = {"widths": "32"}


def metrics(defense: str, options: dict[str, str] | None = None, **problem: Any) -> dict[str, float]:
    problem = {"batch_size": 1, "model_options": SMALL, **problem}
    challenge = malicious.challenge("affine-model", defense, options, **problem)
    guess = malicious.answer("affine-model", challenge, options)
    return reconstruction_metrics(guess, challenge.answers)


@pytest.mark.parametrize("prior", ["none", "population"])
@pytest.mark.parametrize("model", ["mlp", "lenet-dlg"])
def test_a_sample_comes_back_exactly(model: str, prior: str) -> None:
    options = SMALL if model == "mlp" else {}
    found = metrics("fedavg", {"prior": prior}, model=model, model_options=options)
    assert found["psnr"] > 60
    assert found["label_accuracy"] == 1


@pytest.mark.parametrize("defense", ["dbcl", "pbpfl", "fetchsgd"])
def test_it_comes_back_through_sketches_and_masks(defense: str) -> None:
    loss = "mse" if defense == "pbpfl" else "cross-entropy"
    assert metrics(defense, loss=loss)["identified"] == 1


@pytest.mark.parametrize(("directions", "psnr"), [(96, 40), (24, 12)])
def test_as_many_loss_differences_as_pixels_give_a_digit(directions: int, psnr: float) -> None:
    """An upload of BAFFLE is `directions` numbers. With fewer the distribution of digits fills in the rest."""
    found = metrics("baffle", defense_options={"directions": str(directions)})
    assert found["psnr"] > psnr
    assert found["identified"] > 0.6


def test_a_secure_sum_mixes_samples() -> None:
    assert "sums alone" in malicious.reason("affine-model", "pairwise-masks", batch_size=1, model_options=SMALL)


@given(seed=st.integers(0, 20))
def test_what_comes_back_is_affine_in_the_sample(seed: int) -> None:
    """At the crafted model: f(a x + (1 − a) x') = a f(x) + (1 − a) f(x')."""
    seen = SEEN.view.observations[0]
    x, other = torch.rand(2, 1, 1, 8, 8, generator=torch.Generator().manual_seed(seed))
    y = F.one_hot(torch.tensor([seed % 10]), 10).float()
    between = seen.simulate(0.3 * x + 0.7 * other, y)
    for name, value in between.items():
        mixed = 0.3 * seen.simulate(x, y)[name] + 0.7 * seen.simulate(other, y)[name]
        assert torch.allclose(value, mixed, atol=1e-5)


SEEN = malicious.challenge("affine-model", batch_size=1, model_options=SMALL)


def test_all_classes_are_equally_likely_at_the_crafted_model() -> None:
    """So that no label leaves a gradient of 0."""
    bias = SEEN.view.observations[0].simulate(torch.rand(1, 1, 8, 8), F.one_hot(torch.tensor([3]), 10).float())
    gradient = bias["out.bias"]
    assert torch.allclose(gradient, 0.1 - F.one_hot(torch.tensor(3), 10).float(), atol=1e-5)


def test_several_samples_are_no_result() -> None:
    assert "sums alone" in malicious.reason("affine-model", batch_size=4, model_options=SMALL)


def test_a_model_without_biases_is_no_result() -> None:
    assert "no bias" in malicious.reason("affine-model", batch_size=1, model_options={"bias": "false"})


def test_no_client_would_notice_it_by_the_rows() -> None:
    assert SEEN.metrics["check_alike"] == SEEN.metrics["check_dead"] == 0
