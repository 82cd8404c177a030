"""How similar two images are: MSE, PSNR and SSIM per image, in double precision."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from fedarena.core.errors import UserError

PSNR_CAP = 100.0
"""dB; an exact copy has infinite PSNR, which JSON cannot hold."""

WINDOW = 7
"""Side of SSIM's uniform window: scikit-image's default, and it fits 8×8 images."""
C1, C2 = 0.01**2, 0.03**2
"""SSIM's K₁² and K₂², for range 1."""


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
    """Structural similarity per image (Wang et al. 2004), as torchmetrics computes it.

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
    a, b = (functional.pad(x.double(), (WINDOW // 2,) * 4, mode="reflect") for x in (a, b))
    # The operations are torchmetrics', in its order, so that results are equal to the last bit. To import it takes
    # every worker a second.
    side = a.new_tensor([WINDOW, WINDOW])
    window = a.new_ones(a.shape[1], 1, WINDOW, WINDOW) / side.prod()
    means = functional.conv2d(torch.cat([a, b, a * a, b * b, a * b]), window, groups=a.shape[1])
    mean_a, mean_b, square_a, square_b, product = means.split(len(a))
    squared_a, squared_b, multiplied = mean_a.pow(2), mean_b.pow(2), mean_a * mean_b
    variances = (square_a - squared_a).clamp(min=0.0) + (square_b - squared_b).clamp(min=0.0)
    upper = (2 * multiplied + C1) * (2 * (product - multiplied) + C2)
    lower = (squared_a + squared_b + C1) * (variances + C2)
    per_image: Tensor = (upper / lower).flatten(1).mean(1)
    return per_image
