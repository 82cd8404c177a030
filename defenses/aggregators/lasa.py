"""LASA (Xu, Zhang & Hu 2025): layer by layer, the mean of the clipped uploads whose sparse forms are not unusual.

1. x̄_i = x_i min(1, S/‖x_i‖),  S = median of the norms
2. x̂_i = x̄_i without the share `sparsity` of its values that are smallest (of matrices; vectors stay whole)
3. for every layer l: a_i = ‖x̂_i,l‖,  b_i = Σ sign(x̂_i,l) / Σ |sign(x̂_i,l)|,  z(t)_i = |t_i − median t| / std t;
   the mean over {i: z(a)_i < λ_n and z(b)_i < λ_s} of x̄_i,l
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Aggregator, Call, require
from fedarena.defenses.aggregators.cards.lasa import Options
from fedarena.defenses.aggregators.lengths import clipping, lengths, median

ROUNDING = 1e-9
"""A standard deviation up to this share of the largest value counts as 0."""


class LASA(Aggregator):
    """The rule does not use f. `used` is None: every layer has its own rows. `votes`: a row's weights in the layers,
    averaged over their coordinates; 0 for a row that no layer takes."""

    options: Options

    def check(self, n: int, f: int) -> None:
        require(n >= 2 * f + 1, "lasa", n, f, "2f + 1 uploads or more")

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        norms = lengths(x)
        clipped = x * clipping(norms, median(norms)).to(x)[:, None]
        shapes = call.shapes or ((1, x.shape[1]),)
        sparse = sparsified(clipped, shapes, self.options.sparsity)
        averaged = sparse if self.options.averaged == "sparse" else clipped
        sizes = [math.prod(shape) for shape in shapes]
        parts, votes = [], x.new_zeros(len(x), dtype=torch.float64)
        for layer, values, size in zip(sparse.split(sizes, 1), averaged.split(sizes, 1), sizes, strict=True):
            share = self.trusted(layer)
            parts.append(share.to(x) @ values)
            votes += share * size / x.shape[1]
        return Aggregate(torch.cat(parts), None, votes=votes.to(x))

    def trusted(self, layer: Tensor) -> Tensor:
        """[n, size] → [n] float64: equal weights of the rows that pass both checks; of all if none does."""
        signs = layer.sign()
        balance = signs.sum(1, dtype=torch.float64) / signs.abs().sum(1, dtype=torch.float64).clamp(min=1)
        passes = (unusual(lengths(layer)) < self.options.norm_limit) & (unusual(balance) < self.options.sign_limit)
        kept = passes if passes.any() else torch.ones_like(passes)
        return kept.double() / kept.sum()


def unusual(values: Tensor) -> Tensor:
    """[n] → [n]: |t_i − median t| / std t, with the standard deviation over n; 0 where all are equal."""
    away = (values - median(values)).abs()
    largest = values.abs().max()
    # Scaled, since squares could overflow; sorted, since the sum's last digits, which decide ties, depend on the order.
    scaled = (values / largest if largest > 0 else values).sort().values
    std = scaled.std(correction=0) * largest
    return torch.where(std > ROUNDING * largest, away / std, torch.zeros_like(away))


def sparsified(x: Tensor, shapes: tuple[tuple[int, ...], ...], sparsity: float) -> Tensor:
    """[n, d] → [n, d]: in every row the ⌊(1 − sparsity)·N⌋ largest of the N values that are in matrices, and all
    values of tensors of one axis; the others are 0. Of values as large as the last one kept, all are kept."""
    in_matrix = torch.cat([torch.full((math.prod(s),), len(s) > 1) for s in shapes]).to(x.device)
    total = int(in_matrix.sum())
    if total == 0 or sparsity == 0:
        return x
    sizes = x[:, in_matrix].abs() if total < x.shape[1] else x.abs()
    dropped = min(total - int((1 - sparsity) * total), total - 1)
    least = sizes.kthvalue(dropped + 1, dim=1, keepdim=True).values
    return torch.where(in_matrix & (x.abs() < least), torch.zeros_like(x), x)
