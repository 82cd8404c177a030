"""The transformations of ATS against PIL, and what undoes each."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor

from fedarena.core.rng import Rng
from fedarena.defenses.ats.transformations import FIFTY, changes, magnitude


def picture(side: int = 24) -> Tensor:
    """A smooth image in colours, in whole bytes [1, 3, side, side]."""
    coarse = torch.rand(1, 3, 5, 5, generator=Rng(1).torch())
    x = torch.nn.functional.interpolate(coarse, (side, side), mode="bilinear")
    return (x * 200 + 20).round() / 255


def by_pil(image: Image.Image, operation: str, m: float, sign: int) -> Image.Image:
    """As the released code has it."""
    (w, h), by = image.size, sign * m
    moves = {
        "shearY": (1, 0, 0, by, 1, 0),
        "translateX": (1, 0, by * w, 0, 1, 0),
        "translateY": (1, 0, 0, 0, 1, by * h),
    }
    if operation in moves:
        how = Image.Resampling.BICUBIC if operation == "shearY" else Image.Resampling.NEAREST
        return image.transform(image.size, Image.Transform.AFFINE, moves[operation], how, fillcolor=(0, 0, 0))
    if operation == "rotate":
        turned = image.convert("RGBA").rotate(m)
        return Image.composite(turned, Image.new("RGBA", turned.size, (128,) * 4), turned).convert("RGB")
    if operation in ("contrast", "color", "sharpness", "brightness"):
        enhanced: Image.Image = getattr(ImageEnhance, operation.capitalize())(image).enhance(1 + by)
        return enhanced
    if operation == "posterize":
        return ImageOps.posterize(image, int(m))
    if operation == "solarize":
        return ImageOps.solarize(image, int(m * 255) + 1)
    plain: Image.Image = getattr(ImageOps, operation)(image)
    return plain


AT_THE_FRAME = {"rotate": 0.15, "equalize": 0.15, "shearY": 0.06}
"""The share of the pixels that differ: at the frame, by rounding to another neighbour, or by another half step."""


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("operation", sorted({name for name, _ in FIFTY}))
def test_a_transformation_is_that_of_the_released_code(operation: str, sign: int) -> None:
    x = picture()
    for number in [i for i, (name, _) in enumerate(FIFTY) if name == operation][:2]:
        given = Image.fromarray((x[0].permute(1, 2, 0) * 255).round().to(torch.uint8).numpy())
        made = np.array(by_pil(given, operation, magnitude(number), sign))
        theirs = torch.from_numpy(made).permute(2, 0, 1) / 255
        off = (changes(number, sign)[0](x)[0] - theirs).abs()
        assert off.median() <= 1.5 / 255, number
        assert (off > 0.05).float().mean() < AT_THE_FRAME.get(operation, 0.02), number


def test_there_are_fifty_with_the_magnitudes_of_the_code() -> None:
    assert len(FIFTY) == 50
    assert magnitude(3) == pytest.approx(150 / 331)
    assert magnitude(1) == pytest.approx(1 / 3)
    assert magnitude(2) == pytest.approx(60 / 9)
    assert magnitude(11) == 6.0


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize(
    ("number", "near"), [(0, 1e-6), (1, 1e-5), (13, 1e-5), (12, 1e-3), (4, 0.01), (7, 1e-6), (6, 0.08), (2, 0.1)]
)
def test_what_can_be_undone_comes_back(number: int, near: float, sign: int) -> None:
    """In the middle, which stayed in the frame, of an image without extremes."""
    x = 0.3 + 0.3 * picture()
    change, undo = changes(number, sign)
    middle = slice(6, 18)
    off = (undo(change(x)) - x)[..., middle, middle].abs()
    assert off.mean() <= near
    assert (change(x) - x)[..., middle, middle].abs().mean() > 2 * float(off.mean())
