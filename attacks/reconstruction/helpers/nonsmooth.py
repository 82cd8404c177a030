"""Networks with their kinks rounded off: ReLU and max pooling, within a given width.

The gradient of a network of ReLUs and max pooling, as a function of the input, jumps wherever a unit or a maximum
switches. Its derivative, which a search follows, does not show the jumps. Rounded off, with r half the width of the
bend,

    relu_r(z) = (z + r)²/(4r) for |z| < r, and relu(z) elsewhere;     max_r(a, b) = b + relu_r(a − b),

the gradient is continuous, and the search can follow the minimum while r falls to 0 (graduated non-convexity, Blake &
Zisserman 1987). r is in standard deviations of the layer's own input, so that it fits layers of any scale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import reduce
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from fedarena.core.errors import UserError
from fedarena.problem.task import Task

RELU = {F.relu, F.relu_, torch.relu, torch.relu_, Tensor.relu, Tensor.relu_}
POOL = {F.max_pool2d, torch.max_pool2d}


class Rounded(TorchFunctionMode):
    """A context in which every ReLU and every two-dimensional max pooling is rounded off.

    Args:
        width: r of every layer, in standard deviations of the layer's input; above 0.

    Attributes:
        met: whether there was anything to round off.
    """

    def __init__(self, width: float) -> None:
        super().__init__()
        self.width, self.met = width, False

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = dict(kwargs or {})
        self.met |= func in RELU or func in POOL
        if func in RELU:
            z = args[0] if args else named["input"]
            return relu(z, self.radius(z))
        if func in POOL:
            return pool(*args, **named, radius=self.radius)
        return func(*args, **named)

    def radius(self, z: Tensor) -> Tensor:
        """r, a number that is not differentiated; 0 if the input does not vary."""
        return (self.width * z.detach().std(correction=0)).clamp_min(torch.finfo(z.dtype).tiny ** 0.5)


def has_kinks(task: Task, width: float) -> bool:
    """Whether a model has anything to round off. Raises UserError for max pooling that cannot be rounded off."""
    # A copy in evaluation mode draws no dropout and changes no running mean.
    copy, rounding = deepcopy(task.model).eval(), Rounded(width)
    with torch.no_grad(), rounding:
        copy(torch.zeros(1, *task.input_shape).to(next(copy.parameters())))
    return rounding.met


def relu(z: Tensor, r: Tensor) -> Tensor:
    """relu_r, entry by entry."""
    return (z + r).clamp_min(0).minimum(2 * r).square() / (4 * r) + (z - r).clamp_min(0)


def pool(
    input: Tensor,
    kernel_size: int | tuple[int, int],
    stride: int | tuple[int, int] | None = None,
    padding: int | tuple[int, int] = 0,
    dilation: int | tuple[int, int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
    *,
    radius: Callable[[Tensor], Tensor],
) -> Tensor:
    """max_r over windows, two entries at a time, rows before columns: [..., height, width].

    Raises UserError for padding, dilation, or windows that stick out.
    """
    if _pair(padding) != (0, 0) or _pair(dilation) != (1, 1) or ceil_mode or return_indices:
        raise UserError(
            "option 'kinks' rounds off max pooling without padding and dilation, the model has another; allowed: 0"
        )
    kernel = _pair(kernel_size)
    step = _pair(stride or kernel_size)
    r, out = radius(input), input
    for dim in (-1, -2):
        count = (input.shape[dim] - kernel[dim]) // step[dim] + 1
        parts = [out.narrow(dim, i, step[dim] * (count - 1) + 1)[_every(step[dim], dim)] for i in range(kernel[dim])]
        out = reduce(lambda a, b: b + relu(a - b, r), parts)
    return out


def _pair(size: int | tuple[int, ...]) -> tuple[int, int]:
    """Height and width of a window, as torch takes them."""
    height, width = (size, size) if isinstance(size, int) else (size[0], size[-1])
    return height, width


def _every(step: int, dim: int) -> tuple[Any, ...]:
    """Index of every `step`-th entry of the last or the last but one dimension."""
    return (..., slice(None, None, step)) if dim == -1 else (..., slice(None, None, step), slice(None))
