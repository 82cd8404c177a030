"""The judge's metrics for guesses that did not come from a run: `fa.metrics`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fedarena.contracts.inference import Scores
from fedarena.core.binomial import share_ends
from fedarena.core.errors import UserError
from fedarena.goals.metrics import image_similarity as images
from fedarena.goals.metrics.identification import Decoys, identified_in_batches
from fedarena.goals.metrics.membership import membership_metrics
from fedarena.goals.metrics.reconstruction import matched

SMALLEST = 7
"""The least height and width of images that have an SSIM."""


def reconstruction(guess: Any, truth: Any, others: Any = None) -> dict[str, float]:
    """How near guessed images come to the true ones, in whatever order they are.

    Args:
        guess: [m, …]; clipped to [0, 1] first. truth: [n, …] in [0, 1], images [n, channels, height, width] or rows.
        others: real samples [k, …] that are none of the true ones, such as held-out ones.

    Returns:
        mse, psnr (dB), and of images of at least 7×7 pixels ssim: means over the true ones, each with the guess that is
        assigned to it (the least total squared error). With others `identified`: the share of the true ones that are
        nearer to their guess than all others are, with its 95 % interval, and `chance` = 1/(k + 1).

    Raises:
        UserError: shapes that differ, nothing to compare, or truths outside [0, 1].
    """
    x, y = _floats(guess, "guess"), _floats(truth, "truth")
    if x.shape[1:] != y.shape[1:]:
        raise UserError(f"guess has samples of shape {list(x.shape[1:])}, allowed: {list(y.shape[1:])}, as truth has")
    if not bool(((y >= 0) & (y <= 1)).all()):
        raise UserError("truth has values outside [0, 1], allowed: samples in [0, 1]")
    nearest = images.valid(matched(x, y))
    metrics = {"mse": float(images.mse(nearest, y).mean()), "psnr": float(images.psnr(nearest, y).mean())}
    if y.dim() == 4 and min(y.shape[2:]) >= SMALLEST:
        metrics["ssim"] = float(images.ssim(nearest, y).mean())
    if others is None:
        return metrics
    decoys = _floats(others, "others")
    if decoys.shape[1:] != y.shape[1:]:
        raise UserError(f"others have samples of shape {list(decoys.shape[1:])}, allowed: {list(y.shape[1:])}")
    among = Decoys(tuple(decoys for _ in y), (len(decoys),) * len(y), 1.0)
    share = float(identified_in_batches([x], [y], among).double().mean())
    metrics |= {"identified": share, **share_ends("identified", share, len(y)), "chance": 1 / (len(decoys) + 1)}
    return metrics


def membership(scores: Any, members: Any) -> dict[str, float]:
    """How well scores rank members above outsiders (`fedarena.goals.metrics.membership.membership_metrics`).

    Args:
        scores: one number a candidate [m]; higher: more likely a member. members: [m] (bool).

    Raises:
        UserError: lengths that differ, or no member or no outsider.
    """
    values, inside = torch.as_tensor(scores).double().flatten(), torch.as_tensor(members).bool().flatten()
    if len(values) != len(inside):
        raise UserError(f"scores are {len(values)}, allowed: {len(inside)}, one for each of members")
    if not bool(inside.any()) or bool(inside.all()):
        raise UserError("members are all alike, allowed: at least one member and one outsider")
    return membership_metrics([Scores(values)], [inside], grouped=False)


def _floats(samples: Any, name: str) -> Tensor:
    x = torch.as_tensor(samples).detach().cpu().double()
    if x.dim() < 2 or not len(x):
        raise UserError(f"{name} has the shape {list(x.shape)}, allowed: [n, …] with n at least 1")
    return x
