"""Named tensors (model parameters and messages), their device, and their transfer between processes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

from fedarena.core.errors import UserError, type_of

Tensors = dict[str, Tensor]
"""Name → tensor. Stacked over clients, every tensor has a leading client axis."""


def nbytes(tensors: Mapping[str, Tensor]) -> int:
    """Bytes that these tensors take on a wire."""
    return sum(t.numel() * t.element_size() for t in tensors.values())


def stack(rows: Sequence[Mapping[str, Tensor]]) -> Tensors:
    """Per-client tensors → one leading client axis."""
    return {name: torch.stack([row[name] for row in rows]) for name in rows[0]}


def row(stacked: Mapping[str, Tensor], index: int) -> Tensors:
    """One client's tensors."""
    return {name: t[index] for name, t in stacked.items()}


def weighted_mean(stacked: Mapping[str, Tensor], weights: Tensor) -> Tensors:
    """Σ_c w_c t_c / Σ_c w_c over the leading client axis; `weights` has shape [clients]."""
    share = weights / weights.sum()
    return {name: torch.tensordot(share.to(t), t, dims=1) for name, t in stacked.items()}


def combine(a: float, x: Mapping[str, Tensor], b: float, y: Mapping[str, Tensor]) -> Tensors:
    """a·x + b·y, name by name."""
    return {name: _times(a, t) + _times(b, y[name]) for name, t in x.items()}


def _times(a: float, t: Tensor) -> Tensor:
    """a·t; t itself where that has the same bits."""
    return t if a == 1 and t.is_floating_point() else a * t


def scale(a: float, x: Mapping[str, Tensor]) -> Tensors:
    """a·x."""
    return {name: a * t for name, t in x.items()}


def flatten(tensors: Mapping[str, Tensor]) -> Tensor:
    """One vector, in the order of the mapping."""
    return torch.cat([t.reshape(-1) for t in tensors.values()])


def shapes_of(tensors: Mapping[str, Tensor]) -> dict[str, list[int]]:
    """The shape of each tensor, by its name, as messages show it."""
    return {name: list(t.shape) for name, t in tensors.items()}


def format_of(tensors: Mapping[str, Tensor]) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    """The shape and the type of each tensor, by its name."""
    return {name: (tuple(t.shape), t.dtype) for name, t in tensors.items()}


def finite(tensors: Mapping[str, Tensor]) -> bool:
    """Whether every value is finite."""
    return all(bool(torch.isfinite(t).all()) for t in tensors.values())


def to(tensors: Mapping[str, Tensor], device: torch.device | str) -> Tensors:
    """The same tensors on another device."""
    return {name: t.to(device) for name, t in tensors.items()}


def same_names(tensors: Mapping[str, Tensor], names: Sequence[str]) -> Tensors:
    """The subset with these names, in their order."""
    return {name: tensors[name] for name in names}


def rows(stacked: Mapping[str, Tensor]) -> Tensor:
    """Stacked tensors → one row per client, [clients, d], in the order of the mapping."""
    return torch.cat([t.flatten(1) for t in stacked.values()], dim=1)


def shaped(flat: Tensor, like: Mapping[str, Tensor]) -> Tensors:
    """[..., d] → tensors of `like`'s names and shapes with the leading axes of `flat`; undoes `flatten` and `rows`.

    Args:
        like: unstacked tensors.
    """
    parts = flat.split([t.numel() for t in like.values()], dim=-1)
    return {name: part.reshape(*flat.shape[:-1], *t.shape) for part, (name, t) in zip(parts, like.items(), strict=True)}


def least_squares(a: Tensor, b: Tensor) -> Tensor:
    """The x [k] of least norm among those with the least ‖a x − b‖², for a [n, k] of any rank and b [n].

    It is solved on the CPU: PyTorch's solver on a GPU takes it for granted that a has full rank.
    """
    solution: Tensor = torch.linalg.lstsq(a.cpu(), b.cpu()[:, None]).solution[:, 0]
    return solution.to(a.device)


WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"
"""An environment variable that cuBLAS reads at the first product. Without it the order of sums varies."""


def find_device(name: str) -> torch.device:
    """The device of that name. Raises UserError when this machine has none."""
    if name == "cuda":
        if not torch.cuda.is_available():
            raise UserError("option 'device' is cuda, but this machine has no usable CUDA device: allowed here: cpu")
        _repeatable()
    return torch.device(name)


def _repeatable() -> None:
    """Products in the precision of their type and sums in a fixed order, in this process from now on.

    Otherwise convolutions would round their inputs to 10 bits (TF32). Masks would then no longer cancel, and gradients
    could not be matched. An operator that has no fixed order warns.
    """
    os.environ.setdefault(WORKSPACE, ":4096:8")
    with warnings.catch_warnings():
        # Some versions of PyTorch recommend other names for the same settings, which older versions lack.
        warnings.simplefilter("ignore", UserWarning)
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cudnn.benchmark = False
    torch.use_deterministic_algorithms(True, warn_only=True)


def reduce_tensor(tensor: Tensor) -> Any:
    """What `pickle` needs to rebuild the tensor from a numpy array, with the same values and the same strides.

    torch itself writes each tensor as a file, which takes a tenth of a millisecond on either side, and views of a
    federation hold thousands of small tensors. A slice comes back without the rest of its tensor, and a tensor in
    shared memory is no longer shared. A tensor on a GPU crosses as a copy of its values, not as a handle to its memory:
    the process that made it may end first.
    """
    plain = tensor.device.type in ("cpu", "cuda") and tensor.layout == torch.strided and tensor.dtype in NUMPY_TYPES
    seen_otherwise = tensor.requires_grad or tensor.is_conj() or tensor.is_neg()
    # Other strides, even of an axis of length one, may select other kernels, whose sums differ in the last bit.
    if plain and not seen_otherwise and tensor.stride() == _usual_strides(tensor.shape):
        if tensor.device.type == "cpu":
            return torch.from_numpy, (tensor.numpy(),)
        return _from_numpy_on, (tensor.cpu().numpy(), str(tensor.device))
    return tensor.__reduce_ex__(4)


def _from_numpy_on(values: npt.NDArray[Any], device: str) -> Tensor:
    return torch.from_numpy(values).to(device)


def _usual_strides(shape: torch.Size) -> tuple[int, ...]:
    """Strides of a tensor that is written row by row."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(1, size)
    return tuple(reversed(strides))


NUMPY_TYPES = (
    *(torch.float16, torch.float32, torch.float64, torch.complex64, torch.complex128, torch.bool),
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
)
"""Types that numpy has too."""

REDUCERS = {Tensor: reduce_tensor}
"""The form in which joblib's worker processes take reducers."""


def are_tensors(values: Iterable[Any]) -> bool:
    """Whether all values are tensors."""
    return all(isinstance(value, Tensor) for value in values)


def is_plain(value: Any) -> bool:
    """Whether it is a dense tensor that holds real numbers."""
    if not isinstance(value, Tensor) or value.layout != torch.strided:
        return False
    return not (value.is_meta or value.is_quantized or value.is_complex())


def plain_like(value: Any, like: Tensor) -> Tensor | None:
    """A tensor of real numbers in the precision of another one of this shape; None where it is none."""
    return value.to(like) if is_plain(value) and value.shape == like.shape else None


def kind_of(value: Any) -> str:
    """What a value is, for a message: a tensor with its shape, the parts of a tuple, or another type's name."""
    if isinstance(value, tuple):
        return f"a tuple ({', '.join(map(kind_of, value))})"
    if not isinstance(value, Tensor):
        return type_of(value)
    odds = {"complex ": value.is_complex(), "meta ": value.is_meta, "quantized ": value.is_quantized}
    odd = next((word for word, holds in odds.items() if holds), "")
    return f"a {odd if value.layout == torch.strided else 'sparse '}tensor {list(value.shape)}"


@contextmanager
def single_precision() -> Iterator[None]:
    """New tensors have single precision in the block, whatever the caller has set."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
