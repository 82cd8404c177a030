"""Marginal membership: do a candidate's numbers have the distribution of those that were seen?

    score(x) = −sup_t |F_a(t) − F_v(t)|

This is the two-sample Kolmogorov–Smirnov distance between the numbers a(x) that a batch of nothing but x would have
given and the numbers v that were seen, whatever their order. It is the check of BAFFLE's Appendix D, which compares
histograms of loss differences.

The attack takes a random half of the positions of v, and the other half of a(x). At the same positions the two would
share the perturbations, and through them their distributions would show what belongs to the joint. Without the option
`scale` each half is divided by its root mean square. Then BAFFLE's differences show nothing by construction: given the
data they are independent normal numbers, and the data decide nothing but their scale. The scale itself is about ‖∇L‖,
so that keeping it (scale=true) may show something.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fedarena.attacks.membership.cards.marginal_membership import Options
from fedarena.attacks.membership.helpers.candidate_scores import Compare
from fedarena.core.rng import Rng


class MarginalMembership(Compare):
    """The attack; see the module's docstring."""

    options: Options

    def reason(self, target: Tensor) -> str:
        return "" if len(target) > 1 else "a single number was seen, which has no distribution to compare"

    def alike(self, a: Tensor, target: Tensor, rng: Rng) -> float:
        order = torch.randperm(len(target), generator=rng.torch()).to(target.device)
        mine, theirs = order[: len(order) // 2], order[len(order) // 2 :]
        halves = a[mine], target[theirs]
        return -ks_distance(*(halves if self.options.scale else map(unit, halves)))


def unit(values: Tensor) -> Tensor:
    """Divided by their root mean square; zeros stay."""
    size = values.double().square().mean().sqrt()
    return values / size if size > 0 else values


def ks_distance(a: Tensor, b: Tensor) -> float:
    """sup_t |F_a(t) − F_b(t)| of the empirical distribution functions of two samples, in [0, 1]."""
    a, b = a.double().sort().values, b.double().sort().values
    steps = torch.cat([a, b])
    shares = [torch.searchsorted(sample, steps, right=True).double() / len(sample) for sample in (a, b)]
    return float((shares[0] - shares[1]).abs().max())
