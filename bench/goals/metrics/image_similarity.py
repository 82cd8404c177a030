"""How similar two images are: MSE, PSNR and SSIM per image, in double precision."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from fedarena.core.errors import UserError

PSNR_CAP = 100.0
"""dB; an exact copy has infinite PSNR, which JSON cannot hold."""

WINDOW = 7
"""Side of SSIM's uniform window: scikit-image's default, and it fits 8×8 images."""

C1, C2 = 0.01**2, 0.03**2
"""What keeps SSIM's two fractions finite: (K·range)²."""


def valid(images: Tensor) -> Tensor:
    """A guess brought into the range of images, [0, 1] (float64); pixels that are not finite become mid-grey."""
    finite = torch.where(torch.isfinite(images), images, torch.full_like(images, 0.5))
    return finite.double().clamp(0, 1)


def mse(a: Tensor, b: Tensor) -> Tensor:
    """Mean squared error per image: [n, ...], [n, ...] → [n]."""
    return (a.double() - b.double()).square().flatten(1).mean(1)


def psnr(a: Tensor, b: Tensor) -> Tensor:
    """Peak signal-to-noise ratio for range 1, −10·log₁₀ MSE in dB, at most `PSNR_CAP`: → [n]."""
    return (-10 * mse(a, b).log10()).clamp_max(PSNR_CAP)


def ssim(a: Tensor, b: Tensor) -> Tensor:
    """Structural similarity per image (Wang et al. 2004), as torchmetrics computes it, whose import takes a second.

    Convention: range 1, K₁ = 0.01, K₂ = 0.03; uniform 7×7 window; population (biased) variances and
    covariance; images padded by reflection, so that every pixel is the centre of one window; the mean over
    all windows and channels. (scikit-image differs by default: sample covariance, and no window that
    crosses the border.)

    Args:
        a, b: [n, channels, height, width] in [0, 1], height and width at least 7.

    Returns:
        [n], in [−1, 1].

    Raises:
        UserError: inputs of another shape.
    """
    if a.dim() != 4 or min(a.shape[2:]) < WINDOW:
        shape = tuple(a.shape[1:])
        raise UserError(
            f"reconstructions are scored as images: the input shape is {shape}, "
            f"allowed: (channels, height, width) with both sides {WINDOW} or more"
        )
    side, channels = WINDOW // 2, a.shape[1]
    x, y = (F.pad(t.double(), (side, side, side, side), mode="reflect") for t in (a, b))
    window = x.new_ones(channels, 1, WINDOW, WINDOW) / WINDOW**2
    means = F.conv2d(torch.cat((x, y, x * x, y * y, x * y)), window, groups=channels)
    mx, my, mxx, myy, mxy = means.split(len(x))
    mean_x, mean_y, mean_xy = mx.pow(2), my.pow(2), mx * my
    varied = (mxx - mean_x).clamp(min=0) + (myy - mean_y).clamp(min=0)
    each: Tensor = ((2 * mean_xy + C1) * (2 * (mxy - mean_xy) + C2)) / ((mean_x + mean_y + C1) * (varied + C2))
    return each.flatten(1).mean(1)
