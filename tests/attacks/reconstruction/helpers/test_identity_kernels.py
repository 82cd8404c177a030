"""Kernels that copy pixels: every pixel is passed on once, and found again."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fedarena.attacks.reconstruction.helpers.identity_kernels import affine_of, codes, columns, cover


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding", "taps"),
    [(8, 3, 2, 1, 2), (7, 3, 2, 1, 2), (28, 5, 2, 2, 2), (28, 5, 1, 0, 2), (8, 3, 1, 1, 1), (8, 1, 2, 0, 0)],
)
def test_taps_reach_every_pixel(size: int, kernel: int, stride: int, padding: int, taps: int) -> None:
    """By convolutions with one entry each, of a line whose pixels are numbered."""
    layer = nn.Conv2d(1, 1, kernel, stride, padding, bias=False)
    found = cover(size, layer, 0)
    assert len(found) == taps
    line = torch.arange(1.0, size + 1).reshape(1, 1, size, 1).expand(1, 1, size, size)
    reached: set[float] = set()
    with torch.no_grad():
        for tap in found:
            layer.weight.zero_()
            layer.weight[0, 0, tap, kernel // 2] = 1
            reached |= set(layer(line)[0, 0, :, size // 4].tolist())
    assert not found or reached - {0.0} == set(range(1, size + 1))


def test_codes_find_each_pixel_among_the_inputs() -> None:
    """Shuffled, with constants and errors among them."""
    generator = torch.Generator().manual_seed(0)
    order = torch.randperm(20, generator=generator)
    entering = torch.cat([codes(13), torch.full((4, 4), 2.0), torch.zeros(4, 3)], 1)[:, order]
    entering = entering + 0.1 * (torch.rand(entering.shape, generator=generator) - 0.5)
    found = columns(entering, 13)
    assert found is not None
    assert order[found].tolist() == list(range(13))
    assert columns(entering[:, found[1:]], 13) is None


def test_the_preparation_of_pixels_is_found() -> None:
    x = torch.rand(5, 9, dtype=torch.float64)
    scale, shift, off = affine_of(x, 4 * x - 2)
    assert (scale, shift, off) == pytest.approx((4, -2, 0))
    assert affine_of(x, x.square())[2] > 0.01
    assert affine_of(x, x[:, 1:])[2] == float("inf")
