"""Cells that were to count and do not."""

from __future__ import annotations

from typing import Any

import pytest

from fedarena.board.exclusion import uninformative, untuned


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
