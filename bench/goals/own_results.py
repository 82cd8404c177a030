"""The judge's metrics for guesses that did not come from a run: `fa.metrics`."""

from __future__ import annotations

from torch import Tensor

from fedarena.contracts.inference import Reconstruction, Scores
from fedarena.core import given
from fedarena.core.binomial import share_ends
from fedarena.core.errors import UserError
from fedarena.core.given import Numbers
from fedarena.goals.metrics import image_similarity as images
from fedarena.goals.metrics.identification import Decoys, identified_in_batches
from fedarena.goals.metrics.membership import membership_metrics
from fedarena.goals.metrics.reconstruction import matched

SMALLEST = 7
"""The least height and width of images that have an SSIM."""
FARTHEST, BRIGHTEST = 100.0, 2.0
"""The largest size of a value of a guess in [0, 1], and the largest mean of one that has no value below 0."""


def reconstruction(guess: Numbers | Reconstruction, truth: Numbers, others: Numbers | None = None) -> dict[str, float]:
    """How near guessed images come to the true ones, in whatever order they are.

    Args:
        guess: [m, …], or what `fa.invert` returns; clipped to [0, 1] first, since searches leave it.
        truth: [n, …] in [0, 1], images [n, channels, height, width] or rows.
        others: real samples [k, …] that are none of the true ones, such as held-out ones.

    Returns:
        mse, psnr (dB), and of images of at least 7×7 pixels ssim: means over the true ones, each with the guess that is
        assigned to it (the least total squared error). With others `identified`: the share of the true ones that are
        nearer to their guess than all others are, with its 95 % interval, and `chance` = 1/(k + 1).

    Raises:
        UserError: shapes that differ, nothing to compare, values that are not finite, real samples outside [0, 1], or a
            guess in another unit, such as one of pixels up to 255.
    """
    x = _floats(guess.images, "guess") if isinstance(guess, Reconstruction) else _guess(guess)
    y = _samples(truth, "truth")
    if x.shape[1:] != y.shape[1:]:
        raise UserError(f"guess has samples of shape {list(x.shape[1:])}, allowed: {list(y.shape[1:])}, as truth has")
    nearest = images.valid(matched(x, y))
    metrics = {"mse": float(images.mse(nearest, y).mean()), "psnr": float(images.psnr(nearest, y).mean())}
    if y.dim() == 4 and min(y.shape[2:]) >= SMALLEST:
        metrics["ssim"] = float(images.ssim(nearest, y).mean())
    if others is None:
        return metrics
    decoys = _samples(others, "others")
    if decoys.shape[1:] != y.shape[1:]:
        raise UserError(f"others have samples of shape {list(decoys.shape[1:])}, allowed: {list(y.shape[1:])}")
    among = Decoys(tuple(decoys for _ in y), (len(decoys),) * len(y), 1.0)
    share = float(identified_in_batches([x], [y], among).double().mean())
    metrics |= {"identified": share, **share_ends("identified", share, len(y)), "chance": 1 / (len(decoys) + 1)}
    return metrics


def membership(scores: Numbers, members: Numbers) -> dict[str, float]:
    """How well scores rank members above outsiders (`fedarena.goals.metrics.membership.membership_metrics`).

    Args:
        scores: one number a candidate [m], may be infinite; higher: more likely a member. members: [m] (bool).

    Raises:
        UserError: shapes that differ, NaN, or no member or no outsider.
    """
    values, truth = (
        given.numbers("scores", scores, finite=False).cpu().double(),
        given.numbers("members", members).cpu(),
    )
    if truth.dim() != 1 or values.shape != truth.shape:
        shapes = f"{list(values.shape)} and {list(truth.shape)}"
        raise UserError(f"scores and members have the shapes {shapes}, allowed: [m] and [m], one for each candidate")
    if bool(values.isnan().any()):
        raise UserError("scores: values that are NaN, allowed: numbers")
    inside = truth.bool()
    if not bool((truth == inside).all()):
        raise UserError("members: values other than 0 and 1, allowed: whether each is a member")
    if not bool(inside.any()) or bool(inside.all()):
        raise UserError("members are all alike, allowed: at least one member and one outsider")
    return membership_metrics([Scores(values)], [inside], grouped=False)


def _floats(samples: Numbers, name: str) -> Tensor:
    values = given.numbers(name, samples).cpu()
    if not values.is_floating_point() and values.numel() and int(values.max()) > 1:
        raise UserError(f"{name}: whole numbers up to {int(values.max())}, allowed: floats in [0, 1]")
    x = values.double()
    last = x.dim() == 4 and x.shape[-1] in (1, 3) and x.shape[1] not in (1, 3)
    if x.dim() not in (2, 4) or not x.numel() or last:
        raise UserError(
            f"{name} has the shape {list(x.shape)}, allowed: images [n, channels, height, width] (one image is "
            "x[None]) or rows [n, d], with sizes of at least 1"
        )
    return x


def _guess(samples: Numbers) -> Tensor:
    """A guess around [0, 1]. Raises UserError for one in another unit: what a search leaves has both signs."""
    x = _floats(samples, "guess")
    low, high = float(x.min()), float(x.max())
    if max(-low, high) > FARTHEST or (low >= 0 and float(x.mean()) > BRIGHTEST):
        raise UserError(f"guess: values from {low:.3g} to {high:.3g}, allowed: samples in [0, 1], or a little outside")
    return x


def _samples(samples: Numbers, name: str) -> Tensor:
    """Samples in [0, 1]. Raises UserError."""
    x = _floats(samples, name)
    if not bool(((x >= 0) & (x <= 1)).all()):
        raise UserError(f"{name}: values outside [0, 1], allowed: samples in [0, 1]")
    return x
