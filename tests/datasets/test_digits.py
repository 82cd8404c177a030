"""The embedded digits: counts, the fixed split, and a checksum that stands in the table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from fedarena import datasets
from fedarena.datasets import digits
from fedarena.datasets.cards.digits import CARD


def test_the_split_is_stratified_and_loses_nothing() -> None:
    data = datasets.load("digits")
    assert data.x_train.shape == (1438, 1, 8, 8)
    assert data.x_test.shape == (359, 1, 8, 8)
    assert dict(CARD.facts)["images"] == "1438 for training, 359 for testing"
    whole = np.bincount(data.y_train) + np.bincount(data.y_test)
    assert np.abs(np.bincount(data.y_test) - 0.2 * whole).max() <= 0.5
    original = load_digits()
    ours = np.concatenate([data.x_train, data.x_test]).reshape(-1, 64)
    ours_labelled = np.c_[ours, np.concatenate([data.y_train, data.y_test])]
    theirs = np.c_[original.data, original.target]
    assert sorted(map(tuple, ours_labelled.tolist())) == sorted(map(tuple, theirs.tolist()))


def test_they_are_the_same_where_scikit_learn_keeps_the_file_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = digits._images()
    monkeypatch.setattr(digits, "find_spec", lambda name: None)
    for one, other in zip(usual, digits._images.__wrapped__(), strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


def test_pixels_reach_exactly_the_scale() -> None:
    data = datasets.load("digits")
    assert data.scale == data.x_train.max() == 16


def test_the_split_is_the_published_one() -> None:
    facts = datasets.load("digits").provenance
    assert facts.verified
    assert facts.file is None
    assert facts.subset is None


def test_the_data_folder_plays_no_part(tmp_path: Path) -> None:
    assert np.array_equal(datasets.load("digits", tmp_path / "nowhere").x_test, datasets.load("digits").x_test)


def test_bold_is_ink_at_or_above_the_training_median_of_the_class() -> None:
    data = datasets.load("digits")
    bold = dict(zip(("train", "test"), data.attributes["bold"], strict=True))
    for k in range(10):
        ink = data.x_train[data.y_train == k].sum((1, 2, 3), dtype=int)
        held = data.x_test[data.y_test == k].sum((1, 2, 3), dtype=int)
        assert np.array_equal(bold["train"][data.y_train == k], ink >= np.median(ink))
        assert np.array_equal(bold["test"][data.y_test == k], held >= np.median(ink))


def test_bold_and_the_class_say_nothing_of_each_other() -> None:
    data = datasets.load("digits")
    bold, _ = data.attributes["bold"]
    shares = [bold[data.y_train == k].mean() for k in range(10)]
    assert all(0.5 <= share < 0.55 for share in shares)
    without = [np.bincount(data.y_train[bold == b], minlength=10) / (bold == b).sum() for b in (0, 1)]
    assert np.abs(without[0] - without[1]).max() < 0.02
    assert dict(CARD.facts)["attributes"].startswith("bold: ")
