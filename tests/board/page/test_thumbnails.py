"""Strips of pictures, read back by another library."""

from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.image import imread

from fedarena.board.page.thumbnails import SHOWN, SIDE, strip


def read(images: np.ndarray) -> np.ndarray:
    pixels: np.ndarray = imread(io.BytesIO(strip(images.astype(np.float32))), format="png")
    return pixels


@pytest.mark.parametrize("channels", [1, 3])
def test_pixels_come_back_as_they_are(channels: int) -> None:
    draw = np.random.default_rng(0)
    images = np.rint(255 * draw.random((4, channels, 8, 9))) / 255
    pixels = read(images).reshape(8, 4 * 11 - 2, channels)
    for i in range(4):
        found = pixels[:, i * 11 : i * 11 + 9].transpose(2, 0, 1)
        np.testing.assert_allclose(found, images[i], atol=1e-6)
    np.testing.assert_allclose(pixels[:, 9:11], 128 / 255, atol=1e-6)  # the gap is grey


def test_a_strip_has_few_and_small_images() -> None:
    images = np.zeros((20, 1, 62, 47))
    images[:, :, ::2] = 1.0
    pixels = read(images)
    assert pixels.shape == (31, SHOWN * 25 - 2)
    assert max(pixels.shape[0], 23) <= SIDE
    assert set(np.unique(pixels[:, :23])) == {np.float32(128 / 255)}  # averaged over 2 × 2 blocks, not picked


def test_values_beyond_the_scale_are_clipped() -> None:
    pixels = read(np.array([-1.0, 2.0]).reshape(2, 1, 1, 1) * np.ones((2, 1, 2, 2)))
    assert (pixels[0, 0], pixels[0, -1]) == (0.0, 1.0)


def test_the_same_pictures_are_the_same_bytes() -> None:
    images = np.random.default_rng(1).random((3, 3, 32, 32)).astype(np.float32)
    assert strip(images) == strip(images.copy())


@pytest.mark.parametrize("shape", [(2, 8, 8), (0, 1, 8, 8), (2, 2, 8, 8)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="expected"):
        strip(np.zeros(shape, np.float32))
