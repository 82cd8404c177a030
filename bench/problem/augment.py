"""Random changes of training images: crops, flips, colours. Each client draws anew in each round."""

from __future__ import annotations

from collections.abc import Collection

import torch
import torch.nn.functional as F
from torch import Tensor

from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.torchvision_import import import_torchvision

CROP, FLIP, JITTER = "crop", "flip", "jitter"
PADDING = 4
"""Black pixels on every side, out of which a crop of the image's size is cut (as torchvision's RandomCrop)."""
SPREAD = 0.4
"""Brightness, contrast and saturation are multiplied by U(1 − spread, 1 + spread) each, in this order."""


def check_augment(how: Collection[str], shape: tuple[int, ...]) -> None:
    """Refuse changes that these inputs [C, H, W] cannot have. Raises UserError."""
    if how and len(shape) != 3:
        raise UserError(f"option 'augment' is {','.join(how)}, allowed for a data set without images: empty")
    if JITTER in how and shape[0] != 3:
        raise UserError(f"option 'augment' is {','.join(how)}, allowed for images without colours: crop, flip")


def augmented(x: Tensor, how: Collection[str], rng: Rng) -> Tensor:
    """Images [..., C, H, W] in [0, 1], each changed by itself; the same on every device."""
    images = x.flatten(0, -4)
    if CROP in how:
        images = cropped(images, torch.randint(2 * PADDING + 1, (len(images), 2), generator=rng.child(CROP).torch()))
    if FLIP in how:
        turned = torch.rand(len(images), generator=rng.child(FLIP).torch()) < 0.5
        images = torch.where(turned.to(images.device)[:, None, None, None], images.flip(3), images)
    if JITTER in how:
        factors = 1 + SPREAD * (2 * torch.rand(len(images), 3, generator=rng.child(JITTER).torch()) - 1)
        images = torch.stack([coloured(*one) for one in zip(images, factors.tolist(), strict=True)])
    return images.reshape(x.shape)


def cropped(images: Tensor, offsets: Tensor) -> Tensor:
    """The parts of the padded images [n, C, H, W] that begin at (top, left) = `offsets` [n, 2]."""
    n, _, height, width = images.shape
    top, left = offsets.to(images.device).unbind(1)
    rows = (top[:, None] + torch.arange(height, device=images.device))[:, :, None]
    columns = (left[:, None] + torch.arange(width, device=images.device))[:, None, :]
    padded = F.pad(images, (PADDING,) * 4).permute(0, 2, 3, 1)
    return padded[torch.arange(n, device=images.device)[:, None, None], rows, columns].permute(0, 3, 1, 2)


def coloured(image: Tensor, factors: tuple[float, float, float]) -> Tensor:
    """An image [3, H, W] with brightness, contrast and saturation multiplied by these factors."""
    import_torchvision()
    from torchvision.transforms.functional import adjust_brightness, adjust_contrast, adjust_saturation

    brightness, contrast, saturation = factors
    changed: Tensor = adjust_saturation(adjust_contrast(adjust_brightness(image, brightness), contrast), saturation)
    return changed
