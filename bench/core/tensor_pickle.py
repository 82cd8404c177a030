"""Tensors between processes, as numpy arrays.

torch writes each tensor as a file of its own, which takes a tenth of a millisecond a tensor on either side; views of a
federation hold thousands of small ones.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def reduce(tensor: Tensor) -> Any:
    """What `pickle` needs to make the tensor again, with the same values and the same strides.

    A part of a larger tensor comes back alone, and what shared memory does not any more.
    """
    plain = tensor.device.type == "cpu" and tensor.layout == torch.strided and tensor.dtype in KNOWN
    seen_otherwise = tensor.requires_grad or tensor.is_conj() or tensor.is_neg()
    # Other strides, be it of an axis of length one, may choose other kernels, whose sums differ in the last bit.
    if plain and not seen_otherwise and tensor.stride() == _usual(tensor.shape):
        return torch.from_numpy, (tensor.numpy(),)
    return tensor.__reduce_ex__(4)


def _usual(shape: torch.Size) -> tuple[int, ...]:
    """Strides of a tensor that is written row by row."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(1, size)
    return tuple(reversed(strides))


KNOWN = (
    *(torch.float16, torch.float32, torch.float64, torch.complex64, torch.complex128, torch.bool),
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
)
"""Types that numpy has too."""

REDUCERS = {Tensor: reduce}
"""As joblib's worker processes take them."""
