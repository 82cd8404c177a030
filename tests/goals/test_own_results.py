"""`fa.metrics`: the judge's numbers for anybody's guesses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

import fedarena as fa
from fedarena.contracts.inference import Reconstruction

RNG = np.random.default_rng(0)
TRUTH = RNG.random((4, 1, 8, 8))
OTHERS = RNG.random((50, 1, 8, 8))
NO_SEARCH = torch.full((4, 1, 8, 8), 300.0), torch.zeros(4).long()
"""Images and labels far from any."""


def test_the_truth_in_another_order_is_found() -> None:
    found = fa.metrics.reconstruction(TRUTH[::-1].copy(), TRUTH, OTHERS)
    assert (found["mse"], found["ssim"], found["identified"]) == (0, pytest.approx(1), 1)
    assert found["chance"] == pytest.approx(1 / 51)
    assert found["identified_low"] < 1
    assert "identified" not in fa.metrics.reconstruction(TRUTH, TRUTH)


@pytest.mark.filterwarnings("error")
def test_a_list_of_arrays_is_an_array_of_them() -> None:
    assert fa.metrics.reconstruction(list(TRUTH), TRUTH) == fa.metrics.reconstruction(TRUTH, TRUTH)


def test_a_guess_that_another_sample_is_nearer_to_identifies_nothing() -> None:
    found = fa.metrics.reconstruction(OTHERS[:4], TRUTH, OTHERS)
    assert found["identified"] == 0
    assert found["psnr"] == pytest.approx(-10 * np.log10(((OTHERS[:4] - TRUTH) ** 2).mean((1, 2, 3))).mean(), abs=0.6)


def test_rows_have_no_ssim_and_values_out_of_range_are_clipped() -> None:
    rows = TRUTH.reshape(4, -1)
    found = fa.metrics.reconstruction(torch.as_tensor(rows) * 3, rows)
    assert found.keys() == {"mse", "psnr"}
    assert found["mse"] == pytest.approx(((np.clip(rows * 3, 0, 1) - rows) ** 2).mean())


@pytest.mark.parametrize("guess", [TRUTH * 1.3 - 0.2, TRUTH * 20 - 15, Reconstruction(*NO_SEARCH, 0.0, 1)])
def test_what_a_search_has_left_is_clipped(guess: Any) -> None:
    images = np.asarray(guess.images if isinstance(guess, Reconstruction) else guess)
    clipped = fa.metrics.reconstruction(np.clip(images, 0, 1), TRUTH)
    assert fa.metrics.reconstruction(guess, TRUTH) == pytest.approx(clipped)


def test_membership_is_scikit_learn_s_area() -> None:
    members = RNG.random(200) < 0.5
    scores = RNG.normal(size=200) + members
    found = fa.metrics.membership(scores, members)
    assert found["auc"] == pytest.approx(roc_auc_score(members, scores))
    assert found["auc_low"] < found["auc"] < found["auc_high"]
    assert found["candidates"] == 200


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: fa.metrics.reconstruction(TRUTH[:, :, :4], TRUTH), r"shape \[1, 4, 8\], allowed: \[1, 8, 8\]"),
        (lambda: fa.metrics.reconstruction(TRUTH, TRUTH * 3), "outside"),
        (
            lambda: fa.metrics.reconstruction((TRUTH * 255).astype("uint8"), TRUTH),
            "guess: whole numbers up to 2.., allowed",
        ),
        (lambda: fa.metrics.reconstruction(TRUTH * 255, TRUTH), r"guess: values from .* to 2\d\d, allowed: samples in"),
        (lambda: fa.metrics.reconstruction(TRUTH * 255 - 128, TRUTH), r"guess: values from -1\d\d to 1\d\d, allowed"),
        (
            lambda: fa.metrics.reconstruction(TRUTH * 16, TRUTH),
            r"guess: values from .* to 1\d(\.\d)?, allowed: samples",
        ),
        (lambda: fa.metrics.reconstruction([], TRUTH), "guess has the shape"),
        (lambda: fa.metrics.reconstruction(TRUTH[0], TRUTH[0]), r"shape \[1, 8, 8\], allowed: images \[n, channels"),
        (lambda: fa.metrics.reconstruction(np.moveaxis(TRUTH, 1, -1), TRUTH), r"shape \[\d+, 8, 8, 1\], allowed"),
        (lambda: fa.metrics.reconstruction(TRUTH, TRUTH, OTHERS[:, :, 1:]), "others have samples"),
        (lambda: fa.metrics.reconstruction(TRUTH * np.nan, TRUTH), "guess: values that are not finite"),
        (lambda: fa.metrics.reconstruction(TRUTH, TRUTH * np.nan), "truth: values that are not finite"),
        (lambda: fa.metrics.reconstruction(TRUTH, TRUTH, OTHERS + np.inf), "others: values that are not finite"),
        (lambda: fa.metrics.reconstruction(TRUTH, TRUTH, OTHERS + 5), "others: values outside"),
        (lambda: fa.metrics.reconstruction(TRUTH + 1j, TRUTH), "guess: complex numbers"),
        (lambda: fa.metrics.reconstruction("x", TRUTH), "guess: no numbers"),
        (lambda: fa.metrics.reconstruction(TRUTH[:, :, :0], TRUTH[:, :, :0]), "guess has the shape"),
        (lambda: fa.metrics.membership([1, 2], [True]), r"shapes \[2\] and \[1\]"),
        (lambda: fa.metrics.membership([[1, 2]], [[True, False]]), r"shapes \[1, 2\] and \[1, 2\]"),
        (lambda: fa.metrics.membership([1, np.nan], [True, False]), "scores: values that are NaN"),
        (lambda: fa.metrics.membership([1, 2], [2, 0]), "members: values other than 0 and 1"),
        (lambda: fa.metrics.membership([1, 2], [True, True]), "all alike"),
    ],
)
def test_what_does_not_fit_is_told_in_one_line(call: Any, said: str) -> None:
    with pytest.raises(fa.UserError, match=said):
        call()
