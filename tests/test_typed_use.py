"""What `fa.aggregate` gives is of the kind that its types say. `.ci/run` has mypy read this file as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_type

import numpy as np
import pandas as pd
import torch
from helpers.paths import ROOT
from numpy.typing import NDArray
from torch import Tensor

import fedarena as fa

Floats = NDArray[np.floating[Any]]
ROWS = np.arange(12.0).reshape(4, 3)
TENSORS = [torch.ones(2, 2), torch.ones(2, 2), torch.zeros(2, 2)]
VECTORS: list[NDArray[Any]] = [np.ones(3), np.zeros(3), np.zeros(3)]
ARRAYS: list[NDArray[Any]] = [t.numpy() for t in TENSORS]

if TYPE_CHECKING:
    results = fa.run("dbcl", "dlg", rounds=60, seeds=[0, 1], **{"attack.victims": 1})
    assert_type(results, fa.Results)
    assert_type(fa.aggregate("krum", TENSORS, f=1, **{"krum.m": 1}), Tensor)


def test_the_line_that_is_checked_is_the_readme_s() -> None:
    (line,) = [line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("results = fa.run(")]
    assert f"    {line}\n" in (ROOT / "tests/test_typed_use.py").read_text()


def test_tensors_give_tensors() -> None:
    for one in (
        assert_type(fa.aggregate("median", torch.tensor(ROWS), f=1), Tensor),
        assert_type(fa.aggregate("median", [t[0] for t in (torch.ones(2, 3), torch.ones(2, 3))], f=0), Tensor),
    ):
        assert isinstance(one, Tensor)
        assert one.shape == (3,)


def test_arrays_lists_of_numbers_and_tables_give_arrays() -> None:
    for one in (
        assert_type(fa.aggregate("median", ROWS, f=1), Floats),
        assert_type(fa.aggregate("median", VECTORS, f=1), Floats),
        assert_type(fa.aggregate("median", [[1.0, 2.0, 3.0], [1.0, 3.0, 2.0]], f=0), Floats),
        assert_type(fa.aggregate("median", pd.DataFrame(ROWS), f=1), Floats),
        assert_type(fa.aggregate("median", pd.DataFrame(ROWS + 0.5).convert_dtypes(), f=1), Floats),
    ):
        assert isinstance(one, np.ndarray)
        assert one.dtype.kind == "f"
        assert one.shape == (3,)


def test_state_dicts_and_lists_of_layers_give_the_same() -> None:
    named = assert_type(fa.aggregate("median", [{"a": t} for t in TENSORS], f=1), dict[str, Tensor])
    layers = assert_type(fa.aggregate("median", [[t, t] for t in TENSORS], f=1), list[Tensor])
    arrays = assert_type(fa.aggregate("median", [[a, a] for a in ARRAYS], f=1), list[NDArray[Any]])
    named_arrays = assert_type(fa.aggregate("median", [{"a": a} for a in ARRAYS], f=1), dict[str, NDArray[Any]])
    assert torch.equal(named["a"], torch.ones(2, 2))
    assert [t.tolist() for t in layers] == [[[1.0, 1.0], [1.0, 1.0]]] * 2 == [a.tolist() for a in arrays]
    assert isinstance(named_arrays["a"], np.ndarray)
