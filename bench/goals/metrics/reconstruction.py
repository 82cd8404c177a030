"""Metrics of reconstructed samples. The harness judges; attacks never judge themselves.

Guessed images are clipped to [0, 1] and, within a batch, assigned to the true ones so that the total squared error is
least. Metrics are means over all images of all observations that the attack could have named. Where a client draws its
samples by chance, the number of guesses may be wrong. Surplus guesses are ignored, and so are surplus originals: an
answer that is right in all it was asked for scores 1.

The first metric is `identified` (`fedarena.goals.metrics.identification`). `recovered` stands beside it, with a
threshold that is calibrated on the data set (`fedarena.goals.metrics.calibration`).

Rows of a table, inputs [N, D], are judged like images, but without SSIM, which compares neighbouring pixels. A row
counts as recovered by its squared error alone. So does a text, one-hot codes [N, length, words], which is judged by its
words as well (`fedarena.goals.metrics.text_similarity`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor

from fedarena.contracts.inference import Guess
from fedarena.contracts.observation import Observation
from fedarena.core.binomial import share_ends
from fedarena.federation.finished_run import FinishedRun
from fedarena.goals.metrics import image_similarity as images
from fedarena.goals.metrics.identification import Decoys, Truth, chance_in_batches, identified, identified_in_batches
from fedarena.goals.metrics.real_samples import Pool, nearest_others
from fedarena.goals.metrics.text_similarity import text_metrics


@dataclass(frozen=True)
class Victims:
    """What guesses are held against.

    Attributes:
        truths: the samples behind each observation.
        decoys: the real samples that could have been the victims, for each of them in order.
        threshold: the SSIM that a recovered image exceeds; of rows of a table and texts the MSE that one stays below.
        texts: whether samples are one-hot codes of words.
    """

    truths: tuple[Truth, ...]
    decoys: Decoys
    threshold: float
    texts: bool = False


def reconstruction_metrics(
    guess: Guess, victims: Victims, sizes: Sequence[int] = (), readings: int = 1
) -> dict[str, float]:
    """How much was reconstructed.

    Args:
        sizes: how many images the attack had to guess for each observation; by default as many as there are.
        readings: how many guesses are judged, of which the best is shown.

    Returns:
        identified, the share of the victims that their guesses identify. identified_chance: what a guess without an
        upload identifies. decoys: the mean number of other samples that a victim is held against. decoys_same_class:
        the share of them that are of its class. mse, psnr (dB, at most 100), ssim, label_accuracy and recovered, the
        share of images with an SSIM above `recovered_above`. Rows of a table and texts have no ssim, and are recovered
        with an MSE below `recovered_below`. Texts have token_accuracy, exact, rouge_1, rouge_2 and rouge_l. Labels that
        are numbers have label_error, the mean absolute error, in place of label_accuracy. NAME_low and NAME_high of
        identified, recovered, exact and label_accuracy: 95 % intervals over images (`fedarena.core.binomial`). images:
        the number scored. match: the median of the attacker's own distances; if it is tiny and the images are wrong,
        the observation does not determine them. blind: the share of guesses for which the attack had read nothing, if
        there are any.

    Raises:
        ValueError: there is not one reconstruction per observation, or not the required number of images.
    """
    guesses, labels, scored = _assigned(guess, victims.truths, sizes)
    originals = torch.cat([x for x, _ in victims.truths])[scored]
    decoys = victims.decoys.chosen(scored)
    found = identified_in_batches([one.images for one in guess], [x for x, _ in victims.truths], victims.decoys)
    guessed, there = [len(one.images) for one in guess], [len(x) for x, _ in victims.truths]
    metrics = {
        "identified": float(found.sum()) / max(1, len(originals)),
        "identified_chance": chance_in_batches(guessed, there, victims.decoys),
        "decoys": decoys.mean_size,
        "decoys_same_class": decoys.same_class,
        **_likeness(guesses, originals, victims),
        **_labels(labels, torch.cat([y for _, y in victims.truths])[scored]),
        "images": float(len(originals)),
        "match": median(one.match for one in guess),
    }
    for name in ("identified", "recovered", "exact", "label_accuracy"):
        metrics |= share_ends(name, metrics[name], len(originals), readings) if name in metrics else {}
    if any(one.blind for one in guess):
        metrics["blind"] = sum(one.blind for one in guess) / sum(len(one.images) for one in guess)
    return metrics


def _assigned(guess: Guess, truths: Sequence[Truth], sizes: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
    """Guessed images and labels in the order of the originals that they are assigned to, and which originals those are.

    Raises:
        ValueError: there is not one reconstruction per observation, or not the required number of images.
    """
    if len(guess) != len(truths):
        raise ValueError(f"{len(guess)} reconstructions for {len(truths)} observations")
    images_, labels, named = [], [], []
    for one, (x, _), size in zip(guess, truths, sizes or [len(x) for x, _ in truths], strict=True):
        if len(one.images) != size or len(one.labels) != size:
            raise ValueError(f"{len(one.images)} images and {len(one.labels)} labels for {size} samples")
        order = assign(one.images, x)
        named.append(order >= 0)
        images_.append(one.images.to(x.device)[order[order >= 0]])
        labels.append(one.labels.to(x.device)[order[order >= 0]])
    return torch.cat(images_), torch.cat(labels), torch.cat(named)


def prior_metrics(victims: Victims, pool: Pool) -> dict[str, float]:
    """The metrics of two guesses that know the data and see nothing of the victim.

    Returns:
        mse, psnr, ssim, recovered, and what texts have, of `prior_mean_*`, the mean training image, and of
        `prior_nearest_*`, the training image nearest to the truth by MSE (an upper bound on any prior that copies a
        training image), exact copies of the truth excluded. prior_mean_identified: the share that the mean training
        image identifies.
        Labels that are numbers have prior_label_error, the error of the training median.
    """
    originals = torch.cat([x for x, _ in victims.truths])
    mean = mean_image(pool).expand_as(originals)
    priors = {"mean": mean, "nearest": nearest_others(originals, pool)[0]}
    metrics = {
        f"prior_{name}_{key}": value
        for name, prior in priors.items()
        for key, value in _likeness(prior, originals, victims).items()
        if not key.startswith("recovered_")
    }
    metrics["prior_mean_identified"] = float(identified(mean, originals, victims.decoys).double().mean())
    labels = torch.cat([y for _, y in victims.truths])
    if labels.is_floating_point():
        metrics |= {f"prior_{key}": value for key, value in _labels(pool.y.median().expand_as(labels), labels).items()}
    return metrics


def matched(guess: Tensor, originals: Tensor) -> Tensor:
    """Guessed images as they are scored: clipped, in the order of the originals."""
    grey = originals.new_full((1, *guess.shape[1:]), 0.5, dtype=torch.float64)
    return torch.cat([images.valid(guess).to(originals.device), grey])[assign(guess, originals)].to(originals)


def assign(guess: Tensor, originals: Tensor) -> Tensor:
    """Which guessed image belongs to each original: the assignment with the least total MSE, [n] (int64).

    The result is on the originals' device; −1 marks originals without a guess.

    Raises:
        ValueError: the shapes of images differ.
    """
    if guess.shape[1:] != originals.shape[1:]:
        raise ValueError(f"guessed images of shape {tuple(guess.shape)} for originals of {tuple(originals.shape)}")
    from scipy.optimize import linear_sum_assignment

    assigned = torch.full((len(originals),), -1)
    if len(guess) and len(originals):
        a, b = originals.double().flatten(1), images.valid(guess).to(originals.device).flatten(1)
        cost = (a[:, None] - b[None]).square().mean(-1)
        rows, columns = linear_sum_assignment(cost.cpu().numpy())
        assigned[torch.from_numpy(rows)] = torch.from_numpy(columns)
    return assigned.to(originals.device)


def mean_image(pool: Pool) -> Tensor:
    """The mean training image, [*input_shape] in [0, 1]."""
    total = sum(part.double().sum(0) for part in torch.split(pool.x, 4096))
    assert isinstance(total, Tensor)
    return total / len(pool.x) / pool.scale


def _likeness(guess: Tensor, originals: Tensor, victims: Victims) -> dict[str, float]:
    guess, threshold = images.valid(guess), victims.threshold
    errors = images.mse(guess, originals)
    metrics = {"mse": float(errors.mean()), "psnr": float(images.psnr(guess, originals).mean())}
    if victims.texts and len(originals):
        metrics |= text_metrics(guess, originals)
    if victims.texts or originals.dim() == 2:
        return {**metrics, "recovered": float((errors < threshold).double().mean()), "recovered_below": threshold}
    ssim = images.ssim(guess, originals)
    recovered = float((ssim > threshold).double().mean())
    return {**metrics, "ssim": float(ssim.mean()), "recovered": recovered, "recovered_above": threshold}


def _labels(guess: Tensor, truth: Tensor) -> dict[str, float]:
    """The accuracy of classes, or the mean absolute error of numbers, with guesses clipped to [0, 1]."""
    if truth.is_floating_point():
        return {"label_error": float((images.valid(guess).to(truth.device) - truth.double()).abs().mean())}
    return {"label_accuracy": float((guess.to(truth) == truth).double().mean())}


def estimate_metrics(estimate: Mapping[str, Tensor], truth: Mapping[str, Tensor]) -> dict[str, float]:
    """How good an estimate of a gradient or an update is, over the named tensors taken as one vector.

    cosine = ⟨e, t⟩/(‖e‖·‖t‖), 0 where either is zero; relative_l2 = ‖e − t‖/‖t‖, for t = 0 measured absolutely.
    Entries of the estimate that are not finite count as 0.

    Raises:
        ValueError: the names of the tensors differ.
    """
    if set(estimate) != set(truth):
        raise ValueError(f"the estimate names {sorted(estimate)}, the truth {sorted(truth)}")
    e = torch.cat([estimate[name].double().flatten() for name in truth]).nan_to_num(0.0, 0.0, 0.0)
    t = torch.cat([truth[name].double().flatten() for name in truth])
    lengths = e.norm() * t.norm()
    error = (e - t).norm()
    return {
        "cosine": float((e @ t) / lengths) if lengths > 0 else 0.0,
        "relative_l2": float(error / t.norm()) if t.norm() > 0 else float(error),
    }


def only_finite(metrics: dict[str, float]) -> dict[str, float]:
    """The metrics that JSON can hold: measurements that are not finite are left out."""
    return {name: value for name, value in metrics.items() if math.isfinite(value)}


def median_estimate_metrics(finished: FinishedRun, observations: Sequence[Observation]) -> dict[str, float]:
    """Median over observations of cosine and relative L2 error of the party's estimate (DBCL, Section 6.3).

    It is empty where no observation has an estimate.
    """
    pairs = [estimate_metrics(o.estimate, finished.estimated(o)) for o in observations if o.estimate is not None]
    if not pairs:
        return {}
    return {name: float(torch.tensor([p[name] for p in pairs]).median()) for name in ("cosine", "relative_l2")}
