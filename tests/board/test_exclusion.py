"""Cells that were to count and do not."""

from __future__ import annotations

from typing import Any

import pytest

from fedarena.board.exclusion import silent, uninformative, untuned


@pytest.mark.parametrize(
    ("accuracy", "excluded"),
    [
        ({0: 0.9, 1: 0.88, 2: 0.91}, False),
        ({0: 0.1, 1: 0.11, 2: 0.1}, True),
        ({0: 0.9, 1: 0.1, 2: 0.12}, True),
        ({0: 0.9, 1: 0.1}, True),
        ({0: 0.9, 1: 0.1, 2: 0.88}, False),
        ({0: 0.2, 1: 0.6}, False),  # though Student's interval over two seeds holds chance
        ({0: 0.12}, True),
        ({0: 0.159, 1: 0.1, 2: 0.111, 3: 0.162, 4: 0.156}, True),  # on two seeds of five, and in the mean
        ({0: 0.26, 1: 0.1, 2: 0.111, 3: 0.262, 4: 0.256}, False),
        ({0: 0.2}, False),
        ({}, False),  # nothing is known of it
    ],
)
def test_a_model_no_better_than_a_constant_answer_tells_nothing(accuracy: dict[int, float], excluded: bool) -> None:
    reason = uninformative(accuracy, 0.1)
    assert bool(reason) == excluded
    assert not excluded or reason.startswith("uninformative: ")


def test_an_attack_that_took_its_strength_as_given_is_named() -> None:
    record: Any = {"attacked": {"untuned": ["z"]}}
    assert "took its z as given" in untuned({0: record, 1: record})
    assert untuned({0: {"attacked": {"untuned": []}}, 1: {"attacked": {}}}) == ""  # type: ignore[dict-item,typeddict-item]


def test_a_cell_is_silent_if_a_control_reading_leaks_on_one_seed() -> None:
    quiet: Any = {"metrics": {}}
    leaking: Any = {"control": {"said": "nothing", "outcome": "leaks labels"}}
    other: Any = {"control": {"said": "something else", "outcome": "leaks samples"}}
    assert silent([quiet, quiet]) == ""
    assert silent([quiet, leaking]) == "silent: a control reading of the same messages leaks labels"
    assert silent([other]) == "misleading: a control reading of the same messages leaks samples"
