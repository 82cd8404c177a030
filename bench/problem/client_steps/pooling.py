"""2×2 max pooling as three elementwise maxima.

torch's `max_pool2d` on the CPU also finds the position of each maximum, which only a backward pass needs. Without the
positions the values are the same and cost less. For ties the gradients would differ: use it in forward passes only.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class StridedMaxPool2d(nn.Module):
    """`nn.MaxPool2d(2)` in the forward direction."""

    def forward(self, x: Tensor) -> Tensor:
        """[..., h, w] → [..., ⌊h/2⌋, ⌊w/2⌋]; an odd last row or column is left out."""
        h, w = x.shape[-2] // 2 * 2, x.shape[-1] // 2 * 2
        upper, lower = x[..., 0:h:2, :w], x[..., 1:h:2, :w]
        rows = torch.maximum(upper, lower)
        return torch.maximum(rows[..., 0::2], rows[..., 1::2])


def replacements(model: nn.Module) -> dict[int, nn.Module]:
    """id of each 2×2 max pooling in a model → the module that can replace it in forward passes."""
    return {id(module): StridedMaxPool2d() for module in model.modules() if _is_two_by_two(module)}


def _is_two_by_two(module: nn.Module) -> bool:
    """Judged by the exact type: a subclass may have a forward of its own."""
    if type(module) is not nn.MaxPool2d or module.ceil_mode or module.return_indices:
        return False
    wanted = ((module.kernel_size, 2), (module.stride, 2), (module.padding, 0), (module.dilation, 1))
    return all(value in (n, (n, n)) for value, n in wanted)
