"""Recovers PBPFL's mask γ, and with it the output layer, from broadcasts.

By labels. The client's upload is the gradient of a quadratic in γ. The quadratic is least where the masked predictions
explain the labels best:

    γ̂ = Σ_i α_i r_aᵀ(ŷ_i − ȳ_i) / (‖r_a‖² Σ_i α_i²)

Training makes the residuals y − ȳ orthogonal to the last features, of which α is a combination. So a better model gives
a better γ̂.

By columns. Each column j of the output layer gives r_aᵀŴ_j / ‖r_a‖² = γ + r_aᵀW_j / (r_j ‖r_a‖²), and the median over
columns is near γ. This needs no data. In early rounds it is the better of the two, since y is then independent of the
labels. If the interval of that median excludes the estimate by labels, that estimate is dropped.

By two broadcasts. The canonical form of the hidden layers gives the scale s_j of each column j of the output layer, so
that Ŵ s = C + γ r_a sᵀ with C the canonical output layer. One round hardly moves C, but r_a and s are drawn again:

    min over γ_t, γ_u   ‖(Ŵ_t s_t − γ_t r_a,t s_tᵀ) − (Ŵ_u s_u − γ_u r_a,u s_uᵀ)‖₁

This needs no data either. It takes absolute deviations, because a round does not change the columns of units that none
of its samples activates. Least squares would err by the update of the other columns; absolute deviations hardly do.
With one output and r constant over rounds, both terms are parallel: see `fedarena.defenses.pbpfl.gamma_steady`.

By projection. r_a is on the wire, and (I − r_a r_aᵀ/‖r_a‖²) Ŵ does not depend on γ. It gives no estimate of γ either:
all directions of the output but one are the model's own, and that one is lost.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fedarena.core.tensors import least_squares
from fedarena.defenses.pbpfl.widened import Widened
from fedarena.defenses.pbpfl.wire import Masked
from fedarena.models.scaling.positive_scaling import ScalingPlan, scales
from fedarena.problem.loss import Criterion

SURELY = 3.29
"""Standard deviations beyond which one normal variable in a thousand lies."""

PARALLEL = 1e-3
"""sin² of the angle below which two masks cannot be distinguished."""


def gamma_from_labels(sent: Masked, wide: Widened, criterion: Criterion, x: Tensor, y: Tensor) -> float:
    """γ̂ by least squares over samples [n, ...] and their labels."""
    r_a = sent.r_a.double()
    params = {name: p.to(sent.r_a) for name, p in sent.params.items()}
    predicted, alpha = (t.double() for t in wide(params, x.to(sent.r_a)))
    error = predicted - criterion.target(y, predicted)
    return float((alpha * (error @ r_a)).sum() / (r_a.square().sum() * alpha.square().sum()))


def gamma_from_columns(sent: Masked) -> float:
    """γ̂ as the median of r_aᵀŴ_j / ‖r_a‖² over the columns of the output layer."""
    return float(_by_column(sent).median())


def columns_leave_open(sent: Masked, gamma: float) -> bool:
    """Whether γ lies in the 99.9 % interval of the median over m columns, for any distribution of the columns.

    The interval ends at the two values 1.65 √m ranks (3.29 standard deviations of Binomial(m, ½)) from the middle.
    """
    values = _by_column(sent).sort().values
    m = len(values)
    first = max(0, math.floor((m - SURELY * math.sqrt(m)) / 2))
    return float(values[first]) <= gamma <= float(values[m - 1 - first])


def _by_column(sent: Masked) -> Tensor:
    r_a = sent.r_a.double()
    return r_a @ sent.columns() / r_a.square().sum()


def gammas_from_two(sent: Masked, other: Masked, plan: ScalingPlan) -> tuple[float, float] | None:
    """γ̂ of both broadcasts. They are the better, the closer in time the broadcasts are.

    None if r_a,t s_tᵀ and r_a,u s_uᵀ are nearly parallel, as with one output and r constant: then only the difference
    between the two can be estimated.
    """
    layers, masks = zip(*(_canonical_output(one, plan) for one in (sent, other)), strict=True)
    design = torch.stack([masks[0].flatten(), -masks[1].flatten()], 1)
    if 1 - float(torch.cosine_similarity(design[:, 0], design[:, 1], dim=0)) ** 2 < PARALLEL:
        return None
    gammas = least_absolute(design, (layers[0] - layers[1]).flatten())
    return float(gammas[0]), float(gammas[1])


def least_absolute(design: Tensor, target: Tensor, steps: int = 50) -> Tensor:
    """argmin_x ‖A x − b‖₁ by iteratively reweighted least squares, from the least-squares solution on.

    Args:
        design: A [n, k]. target: b [n]. steps: the number of least-squares problems that are solved.
    """
    weight, solution = torch.ones_like(target), torch.zeros_like(design[0])
    for _ in range(steps):
        root = weight.sqrt()
        solution = least_squares(design * root[:, None], target * root)
        off = (design @ solution - target).abs()
        # Residuals below a thousandth of the median have equal weight; otherwise those that are 0 would dominate.
        weight = 1 / off.clamp_min(max(float(off.median()) / 1000, torch.finfo(off.dtype).tiny ** 0.5))
        weight = weight / weight.max()
    return solution


def _canonical_output(sent: Masked, plan: ScalingPlan) -> tuple[Tensor, Tensor]:
    """Ŵ s and r_a sᵀ."""
    weight, s = sent.output[0], scales(plan, {name: t.double() for name, t in sent.params.items()})
    per_column = plan.factors(s)[weight].double().reciprocal()[0]
    if len(sent.output) > 1:
        per_column = torch.cat([per_column, per_column.new_ones(1)])
    return sent.columns() * per_column, torch.outer(sent.r_a.double(), per_column)
