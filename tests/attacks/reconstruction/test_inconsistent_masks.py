"""Masks that a server chooses make one client loud and the others faint, in a secure sum of the honest model."""

from __future__ import annotations

import pytest
import torch
from helpers import malicious

from fedarena.goals.metrics.reconstruction import reconstruction_metrics

SMALL = {"widths": "16"}
ROOM = {"pairwise-masks.bits": "64", "pairwise-masks.bound": "1e6"}
MASKED = "pbpfl+pairwise-masks"


@pytest.mark.parametrize("form", ["paper", "adaptive"])
def test_the_victims_sample_comes_out_of_a_secure_sum(form: str) -> None:
    challenge = malicious.challenge(
        "inconsistent-masks",
        MASKED,
        defense_options=ROOM,
        form=form,  # type: ignore[arg-type]
        clients=3,
        batch_size=1,
        loss="mse",
        model_options=SMALL,
    )
    guess = malicious.answer("inconsistent-masks", challenge)
    assert torch.cat(malicious.errors(guess, challenge)).max() < 1e-3
    assert reconstruction_metrics(guess, challenge.answers)["label_accuracy"] == 1


def test_a_faint_difference_in_scale_mixes_the_clients() -> None:
    """With F close to 1 the sum is not the victim's: the scale does it, and nothing else."""
    options = {"loudness": "1.01"}
    challenge = malicious.challenge(
        "inconsistent-masks",
        MASKED,
        options,
        ROOM,
        clients=3,
        batch_size=1,
        loss="mse",
        model_options=SMALL,
    )
    guess = malicious.answer("inconsistent-masks", challenge, options)
    assert torch.cat(malicious.errors(guess, challenge)).min() > 0.1


def test_a_protocol_without_hidden_factors_is_no_result() -> None:
    assert "keeps no scale" in malicious.reason("inconsistent-masks", "pairwise-masks", model_options=SMALL)


def test_single_uploads_are_no_result() -> None:
    assert "sees each upload" in malicious.reason("inconsistent-masks", "pbpfl", loss="mse", model_options=SMALL)
