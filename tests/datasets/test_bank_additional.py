"""Bank Marketing with economic indicators: what becomes of codes, the two parts, and the words on wrong files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fedarena import datasets
from fedarena.core.errors import UserError
from fedarena.datasets import bank_additional as bank
from fedarena.datasets.dataset import Dataset
from fedarena.datasets.npz import Array
from fedarena.datasets.survey import verify

Make = Callable[..., dict[str, Array]]


@pytest.fixture(scope="module")
def file(real_data: Path) -> Path:
    path = real_data / "bank_additional.npz"
    if not path.is_file():
        pytest.skip(f"no {path}")
    return path


@pytest.fixture(scope="module")
def real(file: Path) -> Dataset:
    return datasets.load("bank-additional", file.parent)


@pytest.fixture
def few() -> Make:
    """A file of 40 rows, of which every fourth is of class 1; keyword arguments replace arrays."""

    def make(**changes: Array) -> dict[str, Array]:
        rng = np.random.default_rng(0)
        x = rng.normal(size=(40, 20)).astype(np.float32)
        for name, (low, high) in bank.CODES.items():
            x[:, bank.COLUMNS.index(name)] = rng.integers(low, high + 1, 40)
        y = (np.arange(40) % 4 == 0).astype(np.int64)
        return {"x": x, "y": y, "feature_names": np.array(bank.COLUMNS)} | changes

    return make


def test_the_file_is_complete_verified_and_in_0_to_1(real: Dataset, file: Path) -> None:
    assert (real.x_train.shape, real.x_test.shape) == ((32950, 48), (8238, 48))
    assert real.provenance.verified
    assert real.provenance.subset is None
    assert (real.x_train.min(0) == 0).all()
    assert (real.x_train.max(0) == 1).all()
    assert real.y_train.mean() == pytest.approx(0.113, abs=5e-4)  # as the card says
    assert real.y_test.mean() == pytest.approx(real.y_train.mean(), abs=1e-4)
    row = verify("bank-additional", file.parent)
    assert (row.state, row.checksum, row.classes, row.shape) == ("present", "verified", 2, (48,))


def test_every_row_is_there_once_under_its_label(real: Dataset, file: Path) -> None:
    """The ages and durations of both parts, brought back to years and seconds, are those of the file by class."""
    with np.load(file) as raw:
        x, y = raw["x"][:, [0, 10]].astype(int), raw["y"]
    ours_x, ours_y = np.concatenate([real.x_train, real.x_test])[:, :2], np.concatenate([real.y_train, real.y_test])
    for column, (low, high) in enumerate((int(c.min()), int(c.max())) for c in x.T):
        for label in (0, 1):
            back = np.rint(ours_x[ours_y == label, column] * (high - low) + low)
            assert np.abs(np.sort(back) - np.sort(x[y == label, column])).mean() < 0.01  # the longest calls may be cut


def test_one_hot_columns_have_one_1_each_in_the_order_of_codes(few: Make) -> None:
    x = few()["x"]
    made = bank.columns(x)
    assert made.shape == (40, 48)
    assert np.array_equal(made[:, :10], x[:, [0, 10, 11, 12, 13, 15, 16, 17, 18, 19]])
    start = 10
    for name, (low, high) in bank.CODES.items():
        hot = made[:, start : start + high - low + 1]
        assert (hot.sum(1) == 1).all()
        assert np.array_equal(hot.argmax(1) + low, x[:, bank.COLUMNS.index(name)])
        start += high - low + 1
    assert start == 48


def test_a_small_file_is_split_within_each_class(few: Make, tmp_path: Path, cache: Path) -> None:
    np.savez(tmp_path / "bank_additional.npz", **few())
    data = datasets.load("bank-additional", tmp_path)
    assert [int(y.sum()) for y in (data.y_train, data.y_test)] == [8, 2]
    assert (len(data.y_train), len(data.y_test)) == (32, 8)
    assert data.provenance.subset == "40 of 41188 rows"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x": np.zeros((40, 48), np.float32)}, ["x is float32 [40, 48]", "float32 [N, 20]"]),
        ({"y": np.arange(40)}, ["y holds values from 0 to 39, expected 0 to 1"]),
        ({"feature_names": np.array(bank.COLUMNS[::-1])}, ["feature_names", "expected: age, job, marital"]),
        ({"x": np.full((40, 20), np.nan, np.float32)}, ["x holds values that are not finite"]),
        ({"x": np.full((40, 20), 0.5, np.float32)}, ["job holds codes other than -1 to 10"]),
    ],
)
def test_wrong_tables_are_told_in_one_line(
    change: dict[str, Array], words: list[str], few: Make, tmp_path: Path, cache: Path
) -> None:
    np.savez(tmp_path / "bank_additional.npz", **few(**change))
    with pytest.raises(UserError) as caught:
        datasets.load("bank-additional", tmp_path)
    assert all(word in str(caught.value) for word in ["bank_additional.npz", *words])
    assert "\n" not in str(caught.value)
