"""The preparation of inputs before a model's first layer: blur, resize, then (x − mean)/std. It has no parameters."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedarena.models.architecture import image_shape

REACH = 4
"""Standard deviations at which the Gaussian is cut off, as `scipy.ndimage.gaussian_filter` does."""


class Preprocess(nn.Module):
    """[n, *shape] → the same, blurred, resized to a square and normalised.

    Attributes:
        mean, std: constants for all pixels. size: pixels a side of the output (bilinear); None: those of the input.
        blur: standard deviation of a Gaussian, in pixels of the input; 0: none.
    """

    def __init__(self, mean: float, std: float, size: int | None, blur: float = 0.0) -> None:
        super().__init__()
        self.mean, self.std, self.size, self.blur = mean, std, size, blur

    def forward(self, x: Tensor) -> Tensor:
        if self.blur:
            x = gaussian(x.shape[-2], self.blur, x) @ x @ gaussian(x.shape[-1], self.blur, x)
        if self.size is not None:
            x = F.interpolate(x, (self.size, self.size), mode="bilinear", align_corners=False)
        return (x - self.mean) / self.std


def gaussian(n: int, sd: float, like: Tensor) -> Tensor:
    """A symmetric matrix [n, n] that smooths a line of n pixels by a Gaussian, with zeros outside of the line.

    K_ij = exp(−(i − j)²/2sd²)/Σ_k exp(−k²/2sd²), k from −r to r, r = ⌊4sd + ½⌋; zero where |i − j| > r.
    """
    reach = int(REACH * sd + 0.5)
    total = sum(math.exp(-0.5 * (k / sd) ** 2) for k in range(-reach, reach + 1))
    at = torch.arange(n, dtype=like.dtype, device=like.device)
    apart = (at.unsqueeze(1) - at).abs()
    return torch.exp(-0.5 * (apart / sd).square()) * (apart <= reach) / total


def head(
    name: str, input_shape: tuple[int, ...], mean: float, std: float, size: int | None, blur: float = 0.0
) -> tuple[dict[str, nn.Module], tuple[int, ...]]:
    """The first module of a model ({} if it would change nothing), and the shape of one input after it.

    Raises:
        UserError: a size or a blur for inputs that are no images.
    """
    after = input_shape
    if blur:
        image_shape(name, input_shape, smallest=1)
    if size is not None:
        after = (image_shape(name, input_shape, smallest=1)[0], size, size)
        size = None if after == input_shape else size
    if (mean, std, size, blur) == (0.0, 1.0, None, 0.0):
        return {}, after
    return {"front": Preprocess(mean, std, size, blur)}, after
