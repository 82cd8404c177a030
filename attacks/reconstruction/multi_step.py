"""Samples behind several local epochs (Dimitrov, Balunović, Konstantinov & Vechev, TMLR 2022).

A client that trains for E epochs visits its n samples in another order in every epoch, and the server does not know
the orders. So every epoch has candidates of its own, X_1, …, X_E [n, *shape], and all local steps on them are played:

    min over X_1, …, X_E   1 − cos(play(X_1, …, X_E; y), target) + τ·TV + λ·mean_e ‖g(X_e) − ḡ‖²/d

g(X) [d] is the mean over the samples of the features relu(A x), A being a random convolution, or a random matrix for
rows of a table: it does not depend on the order, ḡ is its mean over the epochs. It ties the epochs to each other, since
they hold the same samples. At the end the candidates of all epochs are matched to those of one, each to one, by least
squares (`scipy.optimize.linear_sum_assignment`), and averaged. That one is the epoch to which the others are nearest.

The labels are found first, as by `inverting-gradients`; every epoch has them in the same order. The search is that of
`inverting-gradients` as well. An upload in which orders do not matter, of one epoch or of steps on all samples at once,
is attacked as by that one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from fedarena.attacks.reconstruction.cards.multi_step import Options
from fedarena.attacks.reconstruction.helpers.local_epochs import EveryVisit, every_visit
from fedarena.attacks.reconstruction.helpers.matching import Parametrised
from fedarena.attacks.reconstruction.inverting_gradients import InvertingGradients
from fedarena.contracts.inference import Progress, Reconstruction
from fedarena.contracts.observation import Observation
from fedarena.contracts.view import View
from fedarena.core.rng import Rng

KERNEL = 3
"""Pixels a side of the random convolution."""


class MultiStep(InvertingGradients):
    """The attack; see the module's docstring and `fedarena.attacks.reconstruction.cards.multi_step.Options`."""

    options: Options
    name = "multi-step"

    def reconstruct(
        self, view: View, seen: Observation, coordinates: Parametrised | None, rng: Rng, progress: Progress
    ) -> Reconstruction:
        visits = every_visit(seen)
        if visits is None:
            return super().reconstruct(view, seen, coordinates, rng, progress)
        every = replace(seen, images=visits.epochs * seen.images, simulate=visits, rough=None)
        found = super().reconstruct(view, every, coordinates, rng, progress)
        images, labels = (t.reshape(visits.epochs, seen.images, *t.shape[1:]) for t in (found.images, found.labels))
        x, y = averaged(images, labels)
        return replace(found, images=x, labels=y)

    def labels(self, view: View, seen: Observation, images: Tensor) -> Tensor | None:
        visits = seen.simulate
        if not isinstance(visits, EveryVisit):
            return super().labels(view, seen, images)
        n = seen.images // visits.epochs
        fixed = super().labels(view, replace(seen, images=n, simulate=visits.once), images[:, :n])
        return None if fixed is None else fixed.repeat(visits.epochs)

    def further(self, seen: Observation, shape: tuple[int, ...], rng: Rng) -> Callable[[Tensor], Tensor] | None:
        visits, o = seen.simulate, self.options
        if not isinstance(visits, EveryVisit) or not o.invariance:
            return super().further(seen, shape, rng)
        inputs = torch.Size((shape[0], KERNEL, KERNEL) if len(shape) == 3 else shape)
        drawn = torch.randn((o.features, *inputs), generator=rng.child("features").torch())
        weight = (drawn / inputs.numel() ** 0.5).to(next(iter(seen.target.values())))
        return lambda x: o.invariance * apart(features(x, weight), visits.epochs)


def features(x: Tensor, weight: Tensor) -> Tensor:
    """relu(A x): images [n, c, h, w] → [n, features, h, w]; rows [n, d] → [n, features]."""
    return F.relu(F.conv2d(x, weight, padding=KERNEL // 2) if x.dim() == 4 else x.flatten(1) @ weight.flatten(1).T)


def apart(f: Tensor, epochs: int) -> Tensor:
    """The variance between epochs of the mean of f [epochs·n, ...] over their samples, a mean over all features."""
    means = f.reshape(epochs, -1, *f.shape[1:]).mean(1)
    return (means - means.mean(0)).square().mean()


def averaged(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Candidates x [epochs, n, *shape] with labels y [epochs, n], matched and averaged: [n, *shape], [n].

    Only candidates of the same label are matched, where every epoch has the same labels.
    """
    from scipy.optimize import linear_sum_assignment  # slow to import, and only needed here

    flat = x.flatten(2).double()
    costs = (flat[:, None, :, None] - flat[None, :, None]).square().sum(-1)  # [epochs, epochs, n, n]
    other = y[:, None, :, None] != y[None, :, None]
    costs = costs + other * (1 + costs.sum((-2, -1), keepdim=True))
    least, best = torch.inf, (x[0], y[0])
    for reference, to_others in enumerate(costs.cpu()):
        orders = [torch.from_numpy(linear_sum_assignment(cost.numpy())[1]) for cost in to_others]
        total = sum(float(cost.gather(1, order[:, None]).sum()) for cost, order in zip(to_others, orders, strict=True))
        if total < least:
            mean = torch.stack([xs[order.to(xs.device)] for xs, order in zip(x, orders, strict=True)]).mean(0)
            least, best = total, (mean, y[reference])
    return best
