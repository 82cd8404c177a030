"""What a client undoes of PBPFL's masks: γ, and with it the masked output layer.

The client's upload is the gradient of a quadratic in γ whose least value over its own labels is where the masked
predictions explain them best:

    γ̂ = Σ_i α_i r_aᵀ(ŷ_i − ȳ_i) / (‖r_a‖² Σ_i α_i²)

Its error is Σ α r_aᵀ(y − ȳ) over the same denominator, and training makes the residuals y − ȳ orthogonal to the last
features, of which α is a combination: the better the model, the better γ̂. Without labels each column j of the output
layer gives r_aᵀŴ_j / ‖r_a‖² = γ + r_aᵀW_j / (r_j ‖r_a‖²); the median over columns is near γ.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fedarena.criterion import Criterion
from fedarena.tensors import Tensors
from fedarena.widened import Widened


@torch.no_grad()
def gamma_from_labels(
    wide: Widened, criterion: Criterion, masked: Tensors, r_a: Tensor, x: Tensor, y: Tensor
) -> Tensor:
    """γ̂ [] by least squares, in double precision.

    Args:
        masked: Ŵ. r_a: [outputs]. x, y: own samples [n, ...].
    """
    predicted, alpha = (t.double() for t in wide(masked, x))
    error = predicted - criterion.target(y, predicted)
    v = r_a.double().square().sum()
    return (alpha * (error @ r_a.double())).sum() / (v * alpha.square().sum())


def gamma_from_columns(weight: Tensor, bias: Tensor | None, r_a: Tensor) -> Tensor:
    """γ̂ [] as the median of r_aᵀŴ_j / ‖r_a‖² over the columns of the output layer, its bias one of them."""
    columns = weight if bias is None else torch.cat([weight, bias[:, None]], 1)
    r = r_a.double()
    return (r @ columns.double() / r.square().sum()).median()


def without_additive(masked: Tensors, names: Sequence[str], r_a: Tensor, gamma: Tensor) -> Tensors:
    """R ∘ W from Ŵ: the output layer's parameters `names` less γ r_a on every column."""
    found = dict(masked)
    for name in names:
        part = (gamma * r_a.double()).to(r_a)
        found[name] = masked[name] - (part if masked[name].dim() == 1 else part[:, None])
    return found
