"""Activations and norms by the names that options give them; norms have no parameters and no running statistics."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "hardswish": nn.Hardswish,
    "relu": nn.ReLU,
    "selu": nn.SELU,
}


def groups(channels: int) -> int:
    """Groups of `norm=group`: one per 16 channels, but at least two (BAFFLE's code); fewer where they do not divide."""
    return next(n for n in range(max(2, channels // 16), 0, -1) if channels % n == 0)


def norm(name: str, channels: int) -> dict[str, nn.Module]:
    """A norm of `channels` feature maps as a layer {"norm": module}, {} for `none`.

    group   GroupNorm without parameters
    batch   BatchNorm without parameters: the batch's own mean and variance, in training and in evaluation
    """
    norms: dict[str, Callable[[], nn.Module]] = {
        "group": lambda: nn.GroupNorm(groups(channels), channels, affine=False),
        "batch": lambda: nn.BatchNorm2d(channels, affine=False, track_running_stats=False),
    }
    return {} if name == "none" else {"norm": norms[name]()}
