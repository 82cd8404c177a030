"""The embedded notes: counts, words, the published content; texts of third parties that are none are refused."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedarena import datasets
from fedarena.core.errors import UserError
from fedarena.core.registry import find
from fedarena.core.rng import Rng
from fedarena.datasets import clinic_notes
from fedarena.datasets.cards.clinic_notes import CARD
from fedarena.datasets.clinic_notes import COMPLAINTS, LENGTH, WORDS, note
from fedarena.datasets.dataset import Dataset
from fedarena.problem.problem import build
from fedarena.problem.spec import usual_problem


def notes() -> Dataset:
    return datasets.load("clinic-notes")


def test_the_card_says_what_is_there() -> None:
    data, facts = notes(), dict(CARD.facts)
    assert data.provenance.verified
    assert facts["texts"] == f"{len(data.x_train)} for training, {len(data.x_test)} for testing"
    assert facts["shape"].startswith("×".join(map(str, data.x_train.shape[1:])))
    assert facts["words"].startswith(f"{len(WORDS) - 1} and padding")
    assert np.bincount(data.y_train).tolist() == [320] * 6


def test_every_sample_is_a_note_of_its_department() -> None:
    data = notes()
    for x, label in zip(data.x_train[:100], data.y_train[:100], strict=True):
        text = " ".join(WORDS[i] for i in x.argmax(1)).strip()
        groups = tuple(COMPLAINTS.values())
        assert any(" ".join(complaint) in text for complaint in groups[label])
        assert re.search(r"\b\d\d\b", text)
        assert re.search(r"day\b", text)


def test_no_note_stands_in_both_parts() -> None:
    data = notes()
    one, other = ({x.tobytes() for x in part} for part in (data.x_train, data.x_test))
    assert len(one) == len(data.x_train)
    assert not one & other


def test_the_longest_note_has_the_length() -> None:
    draw = Rng(5).numpy()
    lengths = {len(note(label, draw)) for label in range(6) for _ in range(50)}
    assert max(lengths) == LENGTH


def test_the_words_reach_the_problem() -> None:
    problem = build(usual_problem({"dataset": "clinic-notes"}, {}), 0)
    assert problem.words == clinic_notes.WORDS
    assert problem.task.input_shape == (LENGTH, len(WORDS))
    assert build(usual_problem({}, {}), 0).words == ()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"words": WORDS[:-1]}, "x_train is uint8 [1920, 7, 165], expected uint8 or float32 [N, length, 164]"),
        ({"x_train": 0 * notes().x_train}, "x_train holds texts that are no one-hot codes, expected one 1 for each"),
        ({"words": ()}, "expected uint8 or float32 [N, C, H, W], or float32 [N, D]"),
    ],
)
def test_texts_that_are_none_are_refused(change: dict[str, object], told: str) -> None:
    with pytest.raises(UserError) as error:
        replace(notes(), **change)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_the_data_folder_plays_no_part(tmp_path: Path) -> None:
    assert np.array_equal(find("dataset", "clinic-notes").load()(tmp_path / "nowhere").y_test, notes().y_test)
