"""Tables: columns in [0, 1], regressions in [0, 1], the embedded ones, and what `bench data` says of them."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.datasets import load_breast_cancer, load_diabetes

from fedarena import datasets
from fedarena.cli import data as command
from fedarena.cli.problem_args import add_problem_arguments, read_problem, read_settings
from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.datasets.cards.diabetes import UNIT
from fedarena.datasets.dataset import Dataset, Provenance, checksum, stratified
from fedarena.datasets.survey import survey, verify
from fedarena.datasets.tables import to_unit
from fedarena.problem.problem import build

# -- scaling ---------------------------------------------------------------------------------------


def test_columns_are_scaled_by_the_training_part_and_the_test_part_is_cut() -> None:
    train = np.array([[1.0, -4.0, 7.0], [3.0, 4.0, 7.0], [2.0, 0.0, 7.0]])
    test = np.array([[5.0, 2.0, 7.0], [0.0, -9.0, 8.0], [1.5, 4.0, 6.0]])
    a, b = to_unit(train, test)
    assert a.tolist() == [[0, 0, 0], [1, 1, 0], [0.5, 0.5, 0]]
    assert b.tolist() == [[1, 0.75, 0], [0, 0, 0], [0.25, 1, 0]]
    assert a.dtype == b.dtype == np.float32


FINITE = st.floats(-(2.0**100), 2.0**100, width=32)


@settings(max_examples=100, deadline=None)
@given(
    train=arrays.arrays(np.float32, st.tuples(st.integers(1, 9), st.just(3)), elements=FINITE),
    test=arrays.arrays(np.float32, st.tuples(st.integers(1, 9), st.just(3)), elements=FINITE),
)
def test_whatever_comes_lies_in_0_to_1_and_the_training_part_fills_it(train: np.ndarray, test: np.ndarray) -> None:
    a, b = to_unit(train, test)
    for x in (a, b):
        assert ((x >= 0) & (x <= 1)).all()
    varies = train.max(0) > train.min(0)
    assert np.array_equal(a.max(0), varies.astype(np.float32))
    assert not a.min(0).any()


# -- splits ----------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(labels=st.lists(st.integers(0, 3), min_size=1, max_size=80), seed=st.integers(0, 2**32))
def test_a_split_loses_nothing_and_takes_a_fifth_of_every_class(labels: list[int], seed: int) -> None:
    y = np.array(labels)
    train, test = stratified(y, np.random.default_rng(seed))
    assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(len(y)))
    assert (np.diff(train) > 0).all()
    assert (np.diff(test) > 0).all()
    for k in range(4):
        assert abs(np.count_nonzero(y[test] == k) - np.count_nonzero(y == k) / 5) <= 0.5


def test_a_checksum_depends_on_order_and_values_but_not_on_the_machine() -> None:
    a, b = np.arange(3), np.arange(4, dtype=np.float32)
    assert checksum([a, b]) == checksum([a.astype(">i8"), b.astype(">f4")])
    assert len({checksum([a, b]), checksum([b, a]), checksum([a + 1, b])}) == 3


# -- the embedded ones ------------------------------------------------------------------------------


def test_breast_cancer_is_scikit_learn_s_split_within_each_class() -> None:
    data, source = datasets.load("breast-cancer"), load_breast_cancer()
    card = registry.find("dataset", "breast-cancer")
    assert (data.x_train.shape, data.x_test.shape) == ((456, 30), (113, 30))
    assert dict(card.facts)["rows"] == "456 for training, 113 for testing"
    assert np.bincount(data.y_train).tolist() == [170, 286]
    assert np.bincount(data.y_test).tolist() == [42, 71]
    assert data.n_classes == 2
    assert data.provenance.verified
    # Malignant tumours (class 0) are the larger ones: rows and labels belong together.
    assert data.x_train[data.y_train == 0, 0].mean() > data.x_train[data.y_train == 1, 0].mean() + 0.2
    ours, theirs = np.sort(np.concatenate([data.x_train, data.x_test])[:, 0]), np.sort(source.data[:, 0])
    low, high = theirs[0], theirs[-2]  # the largest of all is in the test part: cut
    assert np.abs(ours - np.clip((theirs - low) / (high - low), 0, 1)).max() < 1e-6


def test_diabetes_is_a_regression_in_units_of_its_largest_value() -> None:
    data, source = datasets.load("diabetes"), load_diabetes(scaled=False)
    card = registry.find("dataset", "diabetes")
    assert (data.x_train.shape, data.x_test.shape) == ((354, 10), (88, 10))
    assert dict(card.facts)["rows"] == "354 for training, 88 for testing"
    assert data.n_classes == 0
    assert data.y_train.dtype == np.float32
    assert data.provenance.verified
    assert source.target.max() == UNIT
    ours = np.sort(np.concatenate([data.y_train, data.y_test])) * UNIT
    assert np.abs(ours - np.sort(source.target)).max() < 1e-4
    # The body mass index (column 2) tells more of the course than any other, in their rows and in ours.
    their_r, our_r = (
        [abs(np.corrcoef(x[:, j], y)[0, 1]) for j in range(10)]
        for x, y in ((source.data, source.target), (data.x_train, data.y_train))
    )
    assert int(np.argmax(their_r)) == int(np.argmax(our_r)) == 2
    assert our_r[2] == pytest.approx(their_r[2], abs=0.05)


@pytest.mark.parametrize("name", ["breast-cancer", "diabetes"])
def test_the_data_folder_plays_no_part(name: str, tmp_path: Path) -> None:
    assert np.array_equal(datasets.load(name, tmp_path / "nowhere").x_test, datasets.load(name).x_test)


@pytest.mark.parametrize("name", ["bank-marketing", "breast-cancer", "diabetes"])
def test_a_table_names_a_problem_that_it_fits(name: str) -> None:
    parser = argparse.ArgumentParser()
    add_problem_arguments(parser)
    args = parser.parse_args(["--dataset", name])
    mimic = registry.find("attack", "mimic")  # its own usual partition shares out classes
    made = read_problem(args, read_settings(args), [mimic])
    assert made.model == "mlp"
    if name == "diabetes":
        task = build(made, 0).task
        assert task.input_shape == (10,)
        assert task.criterion.outputs == 1


# -- the contract -----------------------------------------------------------------------------------

ROWS = np.full((4, 3), 0.5, np.float32)
NUMBERS = np.full(4, 0.5, np.float32)
REGRESSION = {"x_train": ROWS, "y_train": NUMBERS, "x_test": ROWS, "y_test": NUMBERS, "scale": 1.0, "n_classes": 0}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x_train": ROWS.astype(np.uint8)}, "x_train is uint8 [4, 3], expected uint8 or float32 [N, C, H, W], or"),
        ({"x_train": ROWS.astype(np.float64)}, "x_train is float64"),
        (
            {"x_train": np.zeros((4, 8, 9, 3), np.float32)},
            "[4, 8, 9, 3], with channels last, expected [N, C, H, W]: np",
        ),
        ({"x_test": ROWS[:, :2]}, "differ in shape: [3] and [2]"),
        ({"x_test": ROWS * 2.5}, "x_test holds values from 1.25 to 1.25, expected 0 to 1"),
        ({"x_train": -ROWS}, "x_train holds values from -0.5 to -0.5, expected 0 to 1"),
        ({"x_train": ROWS * np.float32(np.nan)}, "x_train holds values that are not finite"),
        ({"y_train": np.zeros(4, np.int64)}, "y_train is int64 [4], expected float32 [4]"),
        ({"y_train": NUMBERS[:, None]}, "y_train is float32 [4, 1], expected float32 [4]"),
        ({"y_test": NUMBERS * 3}, "y_test holds numbers from 1.5 to 1.5, expected 0 to 1"),
        ({"y_test": -NUMBERS}, "y_test holds numbers from -0.5 to -0.5, expected 0 to 1"),
        ({"y_test": NUMBERS * np.float32(np.nan)}, "y_test holds numbers from nan to nan, expected 0 to 1"),
        ({"n_classes": 2}, "y_train is float32 [4], expected int64 [4]"),
    ],
)
def test_a_table_and_a_regression_refuse_what_breaks_their_contract(change: dict[str, object], words: str) -> None:
    where = Provenance("made here", None, None, False)
    Dataset(name="toy", provenance=where, **REGRESSION)  # type: ignore[arg-type]
    Dataset(name="toy", provenance=where, **(REGRESSION | {"x_train": 2 * ROWS, "scale": 2.0}))  # type: ignore[arg-type]
    with pytest.raises(UserError) as caught:
        Dataset(name="toy", provenance=where, **(REGRESSION | change))  # type: ignore[arg-type]
    assert words in str(caught.value)


# -- bench data -------------------------------------------------------------------------------------


def test_the_survey_tells_columns_and_numbers() -> None:
    row = survey("diabetes")
    assert (row.state, row.checksum, row.train, row.test) == ("embedded", "verified", 354, 88)
    assert (row.classes, row.shape) == (0, (10,))
    assert row.healthy
    assert verify("breast-cancer").as_dict()["shape"] == [30]


def test_the_table_shows_them(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers(required=True))
    args = parser.parse_args(["data"])
    assert args.run(args) == 0
    lines = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert lines["diabetes"][1:6] == ["354", "+", "88", "numbers", "10"]
    assert lines["breast-cancer"][1:6] == ["456", "+", "113", "2", "30"]
    assert lines["bank-marketing"][1:6] == ["36169", "+", "9042", "2", "51"]
