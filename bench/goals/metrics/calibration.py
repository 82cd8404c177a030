"""The likeness from which a guess counts as recovered: beyond what real samples have in common anyway.

The best guess that needs no upload copies a real sample. So the threshold of a data set is a likeness that at most 5 %
of its training samples exceed with the training sample nearest to them: an SSIM for images, a mean squared error for
rows of a table and texts. The nearest one is found with the truth at hand, which no attacker has. The likeness is
computed for some training samples, and the threshold is the order statistic that is an upper bound of the 95 % quantile
with 95 % confidence.
"""

from __future__ import annotations

import torch

from fedarena.core.rng import Rng
from fedarena.goals.metrics import image_similarity as images
from fedarena.goals.metrics.real_samples import Pool, nearest_others

SAMPLED = 200
"""Training samples whose nearest neighbours are looked for; with fewer all of them."""

PASSING = 0.05
"""The share of nearest neighbours that may count as recovered, at most."""

CONFIDENCE = 0.95


def recovered_threshold(pool: Pool) -> float:
    """The SSIM that a recovered image exceeds, or the mean squared error that a recovered row or text stays below.

    It is a property of the data set and depends on no seed. Without two samples that differ nothing is too alike to
    count: −1 for images, infinity for others.
    """
    order = torch.randperm(len(pool.x), generator=Rng(0).child("calibration").torch())
    originals = pool.x[order[:SAMPLED].to(pool.x.device)].float() / pool.scale
    nearest, distances = nearest_others(originals, pool)
    told_apart = distances.isfinite()
    originals, nearest = originals[told_apart], nearest[told_apart]
    pictures = originals.dim() == 4
    if not len(originals):
        return -1.0 if pictures else torch.inf
    allowed = passing_of(len(originals))
    if pictures:
        return float(images.ssim(nearest, originals).sort(descending=True).values[allowed])
    return float(images.mse(nearest, originals).sort().values[allowed])


def passing_of(n: int) -> int:
    """How many of n samples may pass so that at most `PASSING` of all do, with 95 % confidence: the largest k with
    P(Binomial(n, `PASSING`) ≤ k) ≤ 0.05, or 0."""
    from scipy.special import bdtr  # scipy.stats takes half a second to import

    return max([k for k in range(n) if bdtr(k, n, PASSING) <= 1 - CONFIDENCE], default=0)
