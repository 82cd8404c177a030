"""Values that a caller of the Python API hands over: each is what it has to be, or is refused in one line."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedarena.core.errors import UserError, type_of
from fedarena.core.tensors import is_plain, kind_of

Numbers = Tensor | npt.NDArray[Any] | Sequence[Any]
"""A tensor, an array, or nested lists of numbers."""

HALF = 2
"""Bytes of a number of half precision."""


def integer(name: str, given: Any, low: int, high: int | None = None) -> int:
    """An integer in [low, high]; that of numpy is one, True and 2.0 are none. Raises UserError."""
    may = f"an integer, {low} or more" if high is None else f"an integer from {low} to {high}"
    try:
        value = operator.index(given)
    except TypeError:
        value = low - 1
    if isinstance(given, bool) or value < low or (high is not None and value > high):
        raise UserError(f"{name} is {_shown(given)}, allowed: {may}")
    return value


def positive(name: str, given: Any) -> float:
    """A finite number above 0. Raises UserError."""
    try:
        value = math.nan if isinstance(given, bool | str) else float(given)
    except (TypeError, ValueError):
        value = math.nan
    if not 0 < value < math.inf:
        raise UserError(f"{name} is {_shown(given)}, allowed: a finite number above 0")
    return value


def numbers(name: str, given: Numbers, *, finite: bool = True) -> Tensor:
    """Real numbers as a tensor of their own precision, without a history.

    Args:
        finite: whether infinite values and NaN are refused.

    Raises:
        UserError: no numbers, rows of different lengths, complex numbers, or values that are not finite.
    """
    if np.ma.is_masked(given):
        raise UserError(f"{name}: values that are masked, allowed: arrays without a mask")
    try:
        values = torch.as_tensor(_plain(given)).detach()
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise UserError(f"{name}: no numbers of one shape, allowed: an array, a tensor or lists of numbers") from None
    if values.is_complex():
        raise UserError(f"{name}: complex numbers, allowed: real ones")
    if not is_plain(values):
        raise UserError(f"{name}: {kind_of(values)}, allowed: a dense tensor of numbers")
    values = values.resolve_neg()
    if values.is_floating_point() and values.element_size() < HALF:
        kind = str(values.dtype).removeprefix("torch.")
        raise UserError(f"{name}: {kind} values, allowed: floats of 16 bits or more")
    if finite and not bool(torch.isfinite(values).all()):
        raise UserError(f"{name}: values that are not finite, allowed: finite numbers")
    return values


def _plain(given: Any) -> Any:
    """Arrays and tables as arrays that torch takes as they are: in the machine's order of bytes, in one piece."""
    if isinstance(given, Tensor):
        return given.detach()
    if not isinstance(given, np.ndarray) and not hasattr(given, "to_numpy"):
        if not isinstance(given, list | tuple):
            return given
        parts = [_plain(one) for one in given]
        return np.array(parts) if parts and all(isinstance(one, np.ndarray) for one in parts) else parts
    array = table(given) if hasattr(given, "to_numpy") else np.array(given)
    return array.astype(array.dtype.newbyteorder("="))


def table(given: Any) -> npt.NDArray[Any]:
    """A table or a column of pandas as an array; of types with missing values, which become NaN, as floats.

    Raises ValueError or TypeError for what holds no numbers.
    """
    array = np.array(given)
    if array.dtype == object and given.size:
        array = given.to_numpy(dtype=float, na_value=np.nan)
    return array


def class_numbers(name: str, given: Numbers, n_classes: int | None = None) -> Tensor:
    """Classes as int64; whole numbers of any type are classes. Raises UserError for others, and for those below 0.

    Args:
        n_classes: above the largest class, where that is known.
    """
    values = numbers(name, given)
    whole = values.to(torch.int64)
    low, high = (int(whole.min()), int(whole.max())) if whole.numel() else (0, 0)
    if values.dtype == torch.bool or not bool((values == whole).all()):
        raise UserError(f"{name}: {str(values.dtype).removeprefix('torch.')} values, allowed: whole numbers")
    if low < 0 or (n_classes is not None and high >= n_classes):
        may = "0 or more" if n_classes is None else f"0 to {n_classes - 1}"
        raise UserError(f"{name}: classes from {low} to {high}, allowed: {may}")
    return whole


def _shown(given: Any) -> str:
    text = repr(given)
    return text if len(text) <= 40 and "\n" not in text else type_of(given)
