"""The fifty transformations of ATS (Gao et al. 2021; released code, `policy.py`), and how each is undone.

A transformation is an operation with a magnitude m and, of most, a sign that is drawn. Images are [n, C, H, W] in
[0, 1]. x̄ is an image's mean grey, and s(x) its blur.

    contrast     f x + (1 − f) x̄, f = 1 ± m        brightness  f x
    color        f x + (1 − f) grey(x)              sharpness   f x + (1 − f) s(x)
    shear, translate, rotate   by m of the image's side, or by m degrees; black outside, of `rotate` grey
    invert       1 − x                              solarize    1 − x where x ≥ m
    autocontrast, equalize, posterize

What is undone: f exactly where nothing was cut off; what moved is moved back, with the image's mean where it left the
frame. `solarize` and the last line cannot be undone, and their images stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from fedarena.core.torchvision_import import import_torchvision

FIFTY = (
    *(("invert", 7), ("contrast", 6), ("rotate", 2), ("translateX", 9), ("sharpness", 1)),
    *(("sharpness", 3), ("shearY", 2), ("translateY", 2), ("autocontrast", 5), ("equalize", 2)),
    *(("shearY", 5), ("posterize", 5), ("color", 3), ("brightness", 5), ("sharpness", 9)),
    *(("brightness", 9), ("equalize", 5), ("equalize", 1), ("contrast", 7), ("sharpness", 5)),
    *(("color", 5), ("translateX", 5), ("equalize", 7), ("autocontrast", 8), ("translateY", 3)),
    *(("sharpness", 6), ("brightness", 6), ("color", 8), ("solarize", 0), ("invert", 0)),
    *(("equalize", 0), ("autocontrast", 0), ("equalize", 8), ("equalize", 4), ("color", 5)),
    *(("equalize", 5), ("autocontrast", 4), ("solarize", 4), ("brightness", 3), ("color", 0)),
    *(("solarize", 1), ("autocontrast", 0), ("translateY", 3), ("translateY", 3), ("autocontrast", 1)),
    *(("solarize", 1), ("equalize", 5), ("invert", 0), ("translateY", 3), ("autocontrast", 1)),
)
"""Operation and the place of its magnitude among ten, by number."""
LARGEST = {"shearY": 0.3, "translateX": 150 / 331, "translateY": 150 / 331, "rotate": 30.0}
"""The largest magnitude of what moves; the smallest is 0. Of colours the largest is 1/2."""
GREY = 128 / 255

Change = Callable[[Tensor], Tensor]


def magnitude(number: int) -> float:
    """m of a transformation."""
    operation, place = FIFTY[number]
    if operation == "solarize":
        return (256 - 256 * place / 9) / 255
    if operation == "posterize":
        return float(round(8 - 4 * place / 9))
    return LARGEST.get(operation, 0.5) * place / 9


def changes(number: int, sign: int) -> tuple[Change, Change]:
    """A transformation with a sign, and what undoes it."""
    operation, m = FIFTY[number][0], magnitude(number)
    if operation in ("translateX", "translateY", "shearY", "rotate"):
        # A rotation is never drawn with a sign.
        by = m if operation == "rotate" else sign * m
        fill = GREY if operation == "rotate" else 0.0
        return partial(moved, operation=operation, by=by, fill=fill), partial(moved, operation=operation, by=-by)
    if operation in ("contrast", "brightness", "color", "sharpness"):
        f = 1 + sign * m
        return partial(blended, operation=operation, f=f), partial(unblended, operation=operation, f=f)
    if operation == "invert":
        return inverted, inverted
    if operation == "solarize":
        return partial(solarized, above=m), as_it_is
    return partial(through_bytes, operation=operation, bits=int(m)), as_it_is


def as_it_is(x: Tensor) -> Tensor:
    """x."""
    return x


def inverted(x: Tensor) -> Tensor:
    """1 − x."""
    return 1 - x


def solarized(x: Tensor, above: float) -> Tensor:
    """1 − x where x ≥ `above`, which may be above 1; x elsewhere."""
    return torch.where(x >= above, 1 - x, x)


def moved(x: Tensor, operation: str, by: float, fill: float | None = None) -> Tensor:
    """Images whose pixel (row, column) is that of another place.

    Args:
        by: share of the side, slope or degrees. fill: what stands outside; None: each image's mean.
    """
    height, width = x.shape[-2:]
    rows, columns = torch.meshgrid(torch.arange(height) + 0.5, torch.arange(width) + 0.5, indexing="ij")
    if operation == "translateX":
        columns = columns + round(by * width)
    elif operation == "translateY":
        rows = rows + round(by * height)
    elif operation == "shearY":
        rows = rows + by * columns
    else:
        c, s = math.cos(math.radians(by)), math.sin(math.radians(by))
        down, right = rows - height / 2, columns - width / 2
        rows, columns = c * down + s * right + height / 2, c * right - s * down + width / 2
    grid = torch.stack([2 * columns / width - 1, 2 * rows / height - 1], -1).to(x)
    mode = "bicubic" if operation == "shearY" else "nearest"
    level = x.mean((-3, -2, -1), keepdim=True) if fill is None else x.new_tensor(fill)
    found = F.grid_sample(x - level, grid.expand(len(x), *grid.shape), mode=mode, align_corners=False)
    return (found + level).clamp(0, 1)


def _beside(x: Tensor, operation: str) -> Tensor:
    """What a colour's operation blends an image with."""
    import_torchvision()
    from torchvision.transforms.functional import adjust_sharpness, rgb_to_grayscale

    if operation == "brightness":
        return torch.zeros_like(x)
    if operation == "sharpness":
        blur: Tensor = adjust_sharpness(x, 0.0)
        return blur
    grey = rgb_to_grayscale(x) if x.shape[-3] == 3 else x
    return (grey.mean((-3, -2, -1), keepdim=True) if operation == "contrast" else grey).expand_as(x)


def blended(x: Tensor, operation: str, f: float) -> Tensor:
    """f x + (1 − f) beside, cut off at 0 and 1."""
    return (f * x + (1 - f) * _beside(x, operation)).clamp(0, 1)


def unblended(v: Tensor, operation: str, f: float) -> Tensor:
    """(v − (1 − f) beside(v))/f, which is exact where beside(v) = beside(x); for a blur to first order in 1 − f."""
    if operation == "sharpness":
        return v + (1 - f) * (v - _beside(v, operation))
    return (v - (1 - f) * _beside(v, operation)) / f


def through_bytes(x: Tensor, operation: str, bits: int) -> Tensor:
    """What torchvision makes of bytes, with the derivative of the identity."""
    import_torchvision()
    from torchvision.transforms import functional

    given: dict[str, Any] = {"bits": bits} if operation == "posterize" else {}
    change = getattr(functional, operation)
    made: Tensor = change((x.detach() * 255).round().to(torch.uint8), **given).to(x) / 255
    return x + (made - x).detach()
