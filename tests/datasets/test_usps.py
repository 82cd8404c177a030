"""The two copies of USPS that go about."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fedarena import datasets
from fedarena.models.preprocess import Preprocess

LIBSVM = {
    (0, 0): "-.999999 -.999928 -.997885 -.973729 -.855772 -.597416 -.289254 .001891 "
    ".199196 .292162 .058410 -.398885 -.782804 -.958667 -.997106 -.999930",
    (1, 8): "-.318219 .449996 .278885 -.552912 -.942968 -.995577 -.967949 -.773996 "
    "-.274831 .260716 .448405 .282891 -.071388 -.066421 .406554 .244603",
    (2, 0): "-.998108 -.963890 -.767366 -.287844 .234189 .467618 .504251 .501694 "
    ".480122 .345490 -.006737 -.438129 -.749480 -.936640 -.994442 -.999824",
}
"""(test image, row) → its pixels in LIBSVM's usps.t, from −1 to 1."""


def test_libsvm_s_copy_is_ours_blurred(real_data: Path) -> None:
    data = datasets.load("usps", real_data)
    assert data.provenance.verified
    x = 2 * torch.from_numpy(data.x_test[:3] / data.scale)[:, 0]  # from 0, so that zeros outside are background
    blurred, bare = Preprocess(0.0, 1.0, None, 0.75)(x) - 1, x - 1
    for (image, row), text in LIBSVM.items():
        theirs = torch.tensor([float(word) for word in text.split()], dtype=torch.float64)
        assert (blurred[image, row] - theirs).abs().max() < 0.0025
        assert (bare[image, row] - theirs).abs().max() > 0.25


def test_the_authors_constants_are_those_of_the_blurred_copy(real_data: Path) -> None:
    """They subtract .2469 and divide by .2853, of pixels that torchvision truncates to 8 bits."""
    data = datasets.load("usps", real_data)
    x = torch.from_numpy(data.x_train / data.scale)
    in_8_bits = (data.scale * Preprocess(0.0, 1.0, None, 0.75)(x)).floor() / data.scale
    blurred, bare = (Preprocess(0.0, 1.0, 28)(pixels) for pixels in (in_8_bits, x))
    assert blurred.mean().item() == pytest.approx(0.2469, abs=0.0005)
    assert blurred.std().item() == pytest.approx(0.2853, abs=0.0005)
    assert bare.std().item() > 0.35
