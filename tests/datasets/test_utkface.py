"""UTKFace: the file's own split and labels, and attributes by race and age."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedarena import datasets
from fedarena.core.errors import UserError
from fedarena.datasets.cards.utkface import CARD
from fedarena.datasets.dataset import Dataset
from fedarena.datasets.npz import Array
from fedarena.datasets.survey import survey, verify


@pytest.fixture(scope="module")
def file(real_data: Path) -> Path:
    path = real_data / "utkface_32.npz"
    if not path.is_file():
        pytest.skip(f"no {path}")
    return path


@pytest.fixture(scope="module")
def real(file: Path) -> Dataset:
    return datasets.load("utkface", file.parent)


def little(**changes: Array) -> dict[str, Array]:
    """A file of six images, two of them for testing."""
    made = {
        "x": np.random.default_rng(0).integers(0, 256, (6, 32, 32, 3), dtype=np.uint8),
        "age": np.array([12, 13, 59, 60, 1, 90]),
        "gender": np.array([0, 1, 1, 0, 1, 0]),
        "race": np.array([0, 1, 2, 3, 4, 1]),
        "is_test": np.array([False, False, True, False, True, False]),
    }
    return made | changes


def test_parts_are_the_file_s_own(real: Dataset, file: Path) -> None:
    with np.load(file) as raw:
        x, gender, test = raw["x"], raw["gender"], raw["is_test"]
    assert np.array_equal(real.x_train, x[~test].transpose(0, 3, 1, 2))
    assert np.array_equal(real.x_test, x[test].transpose(0, 3, 1, 2))
    assert np.array_equal(real.y_train, gender[~test])
    assert np.array_equal(real.y_test, gender[test])
    assert real.provenance.verified
    assert real.provenance.subset is not None
    assert real.provenance.subset.startswith("of UTKFace only crop_part1")


def test_the_card_has_the_counts(real: Dataset) -> None:
    for name, parts in real.attributes.items():
        counts = " + ".join(str((has == 1).sum()) for has in parts)
        assert f"{name} {counts}" in dict(CARD.facts)["attributes"]
    assert all((has >= 0).all() for parts in real.attributes.values() for has in parts)


def test_attributes_by_race_and_age(tmp_path: Path, cache: Path) -> None:
    np.savez(tmp_path / "utkface_32.npz", **little())
    data = datasets.load("utkface", tmp_path)
    assert data.y_train.tolist() == [0, 1, 0, 0]
    assert data.y_test.tolist() == [1, 1]
    assert {name: [has.tolist() for has in parts] for name, parts in data.attributes.items()} == {
        "white": [[1, 0, 0, 0], [0, 0]],
        "black": [[0, 1, 0, 1], [0, 0]],
        "asian": [[0, 0, 0, 0], [1, 0]],
        "indian": [[0, 0, 1, 0], [0, 0]],
        "child": [[1, 0, 0, 0], [0, 1]],
        "old": [[0, 0, 1, 1], [0, 0]],
    }


def test_bench_data_knows_the_file(file: Path) -> None:
    seen, read = survey("utkface", file.parent), verify("utkface", file.parent)
    assert seen == read
    assert (seen.state, seen.checksum, seen.train, seen.test) == ("present", "verified", 7722, 1930)
    assert (seen.shape, seen.classes) == ((3, 32, 32), 2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x": np.zeros((6, 32, 32), np.uint8)}, "x is uint8 [6, 32, 32], expected uint8 [N, 32, 32, 3]"),
        ({"race": np.full(6, 5)}, "race holds values from 5 to 5, expected 0 to 4"),
        ({"is_test": np.zeros(6)}, "is_test is float64 [6], expected integers [6]"),
        ({"is_test": np.zeros(6, bool)}, "y_test is int64 [0], expected int64 [0], 1 sample or more"),
    ],
)
def test_wrong_contents_are_told_in_one_line(change: dict[str, Array], words: str, tmp_path: Path, cache: Path) -> None:
    np.savez(tmp_path / "utkface_32.npz", **little(**change))
    with pytest.raises(UserError) as caught:
        datasets.load("utkface", tmp_path)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_absent_file_is_to_be_put_there_by_hand(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(UserError, match=r"put utkface_32\.npz into .* cannot be downloaded: .*github\.io/UTKFace"):
        datasets.load("utkface", tmp_path)
