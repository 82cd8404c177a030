"""Tensors that go to another process come back the same, to the bit and to the stride."""

from __future__ import annotations

import io
from typing import Any

import cloudpickle
import pytest
import torch
from torch import Tensor

from fedarena.core.tensors import NUMPY_TYPES, REDUCERS, reduce_tensor


class Pickler(cloudpickle.Pickler):
    """As loky's: reducers by exact type."""

    dispatch_table = {**cloudpickle.Pickler.dispatch_table, **REDUCERS}  # noqa: RUF012


def there_and_back(value: Any) -> Any:
    file = io.BytesIO()
    Pickler(file).dump(value)
    return cloudpickle.loads(file.getvalue())


BASE = torch.randn(2, 3, 4, 5)
CASES = {
    **{str(dtype): (torch.randn(3, 4) * 9).to(dtype) for dtype in NUMPY_TYPES},
    "bfloat16": torch.randn(5).to(torch.bfloat16),
    "scalar": torch.tensor(2.5),
    "empty": torch.zeros(0, 7),
    "transposed": torch.randn(3, 4).T,
    "channels last": BASE.contiguous(memory_format=torch.channels_last),
    "channels last, one channel": torch.randn(2, 1, 4, 5).to(memory_format=torch.channels_last),
    "row of a column": torch.randn(4, 3)[:, :1].T,
    "expanded": torch.randn(1, 4).expand(3, 4),
    "every other": torch.arange(10.0)[::2],
    "conjugate": torch.randn(3, dtype=torch.complex64).conj(),
    "sparse": torch.eye(3).to_sparse(),
    "nan": torch.tensor([float("nan"), float("-inf"), -0.0]),
    "with gradient": torch.randn(3, requires_grad=True),
}


@pytest.mark.parametrize("name", CASES)
def test_values_strides_and_gradients_are_kept(name: str) -> None:
    tensor = CASES[name]
    again = there_and_back({"in": [tensor]})["in"][0]
    assert type(again) is Tensor
    assert (again.dtype, again.shape, again.requires_grad) == (tensor.dtype, tensor.shape, tensor.requires_grad)
    assert again.layout == tensor.layout
    if tensor.layout == torch.strided:
        assert again.stride() == tensor.stride()
    dense = [t.detach().to_dense() if t.layout != torch.strided else t.detach().resolve_conj() for t in (tensor, again)]
    assert torch.equal(*(t.contiguous().view(torch.uint8) if t.numel() and t.dim() else t for t in dense))


def test_it_may_be_written_to_and_a_part_comes_alone() -> None:
    whole = torch.zeros(1000, 1000)
    file = io.BytesIO()
    Pickler(file).dump(whole[3])
    assert len(file.getvalue()) < 10_000
    again = cloudpickle.loads(file.getvalue())
    again += 1
    assert again.sum() == 1000
    assert whole.sum() == 0


def test_parameters_stay_parameters() -> None:
    assert isinstance(there_and_back(torch.nn.Parameter(torch.ones(2))), torch.nn.Parameter)
    assert reduce_tensor(torch.ones(2))[0] is torch.from_numpy
