"""Estimates of PBPFL's γ if the hidden masks r are the same in all rounds.

Column j of the output layer is then

    Ŵ_tj = W_tj + γ_t r_a,t

(W: the model under r). `fedarena.defenses.pbpfl.gamma.gammas_from_two` needs a new r or a new direction of r_a in each
round. With one output it has only the distance between γ_t r_a,t and γ_u r_a,u; with two the directions are often
nearly the same. This module has two other methods.

By balance. A network keeps its function if the weights into a hidden unit are multiplied by a factor and the weights
out of it are divided by it. So for any samples and labels, the gradient g of its loss has, in every unit,

    Σ_in W g = Σ_out W g        (Du, Hu & Lee 2018, arXiv 1806.00900, Theorem 2.1, of a gradient's flow)

A step of SGD is a multiple of g. The weights out of a unit in the output layer, its columns k there, add
Σ_k (Ŵ_k − γ r)ᵀ(ΔŴ_k − γ' r' + γ r) to the right-hand side, with r = r_a,t, r' = r_a,t+1, so that

    Σ_in Ŵ ΔŴ − Σ_out Ŵ ΔŴ = γ Σ_k rᵀ(Ŵ_k − ΔŴ_k) − γ' Σ_k r'ᵀŴ_k + n (γ γ' rᵀr' − γ² ‖r‖²)     (k: n columns)

is linear in γ, γ' and the last bracket. There are as many equations as units, no data are needed, and the only error is
rounding.

By the distribution of γ, for one output, where a_t = γ_t r_a,t is a number. If steps are not gradients (Adam), the
median over columns of ΔŴ_t is near Δa_t, because most columns move little in a round. The sums D_t of these medians
leave one unknown for all rounds, a_t = D_t + c. The public distribution of γ, such as 0 < γ_t < 1, bounds c in every
round, most tightly if γ or 1 − γ is small. Labels or columns of all rounds together give the value within the bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from fedarena.core.tensors import Tensors, least_squares
from fedarena.defenses.pbpfl.wire import Masked
from fedarena.models.scaling.plan import Run, ScalingPlan

Bounds = Callable[[Tensor, Tensor], tuple[float, float]]
"""(r_a [rounds], D [rounds]) → bounds of c, given that each (D_t + c)/r_a,t is a γ. Errors of D may swap them."""


def gammas_from_balance(sent: Masked, after: Masked, plan: ScalingPlan) -> tuple[float, float] | None:
    """γ̂ of a broadcast and of the next one, with one step of SGD along a gradient between them.

    None if the output layer reads fewer than three hidden units: there are more unknowns than equations.

    Args:
        sent, after: broadcasts with the same hidden masks.
    """
    was, now = ({n: p.double() for n, p in one.params.items()} for one in (sent, after))
    moved = {name: now[name] - was[name] for name in was}
    given = _balance(plan, {name: was[name] * moved[name] for name in was})
    last = plan.layers[-1]
    columns, step = was[sent.output[0]], moved[sent.output[0]]
    r, later = sent.r_a.double(), after.r_a.double()
    # The unknown is e in γ' = ratio γ + e, not γ': with parallel masks, the first two columns would otherwise differ by
    # no more than the step.
    ratio = r @ later / later.square().sum()
    parts = (r @ (columns - step) - ratio * (later @ columns), -later @ columns, torch.ones_like(columns[0]))
    design = torch.stack([_by_unit(plan, last.columns, part) for part in parts], 1)
    read = design[:, 2] > 0
    if int(read.sum()) < design.shape[1]:
        return None
    gamma, further, _ = least_squares(design[read], given[read]).tolist()
    return gamma, float(ratio) * gamma + further


def gamma_from_bounds(
    sents: Sequence[Masked], at: int, bounds: Bounds, labels: Callable[[Masked], float] | None
) -> float:
    """γ̂ of `sents[at]`, from broadcasts in their order. It is the better, the closer in time they are.

    Args:
        bounds: the bounds of c. labels: estimates the γ of one broadcast by labels; None: the party has no data.
    """
    columns = torch.stack([sent.columns()[0] for sent in sents])
    r_a = torch.cat([sent.r_a.double() for sent in sents])
    between = torch.cat([r_a.new_zeros(1), columns.diff(dim=0).median(1).values.cumsum(0)])
    between = between - between[at]
    low, high = sorted(bounds(r_a, between))
    if labels is None:
        # All columns err to the same side, so an estimate beyond the bounds is ignored.
        constant = float((columns.median(1).values - between).median())
        constant = constant if low <= constant <= high else (low + high) / 2
    else:
        each = torch.tensor([labels(sent) for sent in sents], dtype=r_a.dtype, device=r_a.device)
        constant = min(max(float((each * r_a - between).median()), low), high)
    return constant / float(r_a[at])


def _balance(plan: ScalingPlan, products: Tensors) -> Tensor:
    """Σ_in − Σ_out of products, weight by weight, for every unit [Σ sizes]; 0 for the products W g."""
    balance = products[f"{plan.layers[0].name}.weight"].new_zeros(sum(plan.sizes))
    for layer in plan.layers:
        weight = products[f"{layer.name}.weight"]
        if layer.kernel:
            weight = weight.flatten(2).sum(2)
        rows = weight.sum(1) + products[f"{layer.name}.bias"] if layer.bias else weight.sum(1)
        balance += _by_unit(plan, layer.rows, rows) - _by_unit(plan, layer.columns, weight.sum(0))
    return balance


def _by_unit(plan: ScalingPlan, runs: Sequence[Run], values: Tensor) -> Tensor:
    """The sum over each unit's rows or columns [Σ sizes], from one number for each row or column."""
    starts = [sum(plan.sizes[:g]) for g in range(len(plan.sizes))]
    sums = values.new_zeros(sum(plan.sizes))
    for run, part in zip(runs, values.split([run.channels * run.spatial for run in runs]), strict=True):
        if run.group is not None:
            sums[starts[run.group] : starts[run.group] + run.channels] += part.reshape(-1, run.spatial).sum(1)
    return sums
