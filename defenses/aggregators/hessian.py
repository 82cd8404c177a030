"""The product of an L-BFGS Hessian with vectors, from steps and the changes of the gradient along them.

B = σI − [σS  Y] M⁻¹ [σS  Y]ᵀ,   M = [[σ SᵀS, L], [Lᵀ, −D]]      (Byrd, Nocedal & Schnabel 1994, equation 3.5)

σ = ⟨y_last, s_last⟩/⟨s_last, s_last⟩;  D, L: diagonal and strictly lower part of SᵀY
"""

from __future__ import annotations

import torch
from torch import Tensor


def hessian_times(steps: Tensor, changes: Tensor, vectors: Tensor) -> Tensor:
    """[k, d], [k, d], [m, d] → [m, d] float64: B times each vector; 0 where the last step is 0 or not finite.

    Rows of `steps` and `changes` are the s and y, oldest first. A singular M is solved in the least-squares sense.
    """
    s, y, v = steps.double(), changes.double(), vectors.double()
    inner, curvature = s @ s.T, s @ y.T
    last = inner[-1, -1]
    if last == 0 or not (inner.isfinite().all() and curvature.isfinite().all()):
        return torch.zeros_like(v)
    sigma = curvature[-1, -1] / last
    lower = curvature.tril(-1)
    middle = torch.cat(
        [torch.cat([sigma * inner, lower], 1), torch.cat([lower.T, -torch.diag(curvature.diagonal())], 1)]
    )
    both = torch.cat([sigma * s, y])
    solved = torch.linalg.lstsq(middle.cpu(), (both @ v.T).cpu(), driver="gelsd").solution.to(v)
    product: Tensor = sigma * v - solved.T @ both
    return product
