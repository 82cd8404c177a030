"""Shares as they are printed."""

from __future__ import annotations

import pytest

from fedarena.core.text.numbers import Mean, percent, quality, with_ranges, without_numbers


@pytest.mark.parametrize(
    ("value", "half", "text"),
    [
        (0.954, None, "95 %"),
        (0.5, 0.12, "50 ± 12 %"),
        (1.0, 0.0, "100 ± 0 %"),
        (0.95, 0.12, "95 % (83 to 100 %)"),
        (0.05, 0.12, "5 % (0 to 17 %)"),
        (0.5, 0.9, "50 % (0 to 100 %)"),
    ],
)
def test_no_share_is_printed_beyond_nothing_and_all(value: float, half: float | None, text: str) -> None:
    assert percent(Mean(value, half, 1 if half is None else 3)) == text


def test_r_squared_is_a_number_and_an_accuracy_a_share() -> None:
    assert quality(Mean(0.451, None, 1), "R2") == "R² 0.45"
    assert quality(Mean(-0.5, 0.25, 3), "R2") == "R² -0.50 ± 0.25"
    assert quality(Mean(-1e6, None, 1), "R2") == "R² below -100"
    assert quality(Mean(0.451, None, 1), "accuracy") == "accuracy 45 %"


def test_texts_that_differ_in_numbers_alone_become_one_with_ranges() -> None:
    stopped = ["stopped in round 7: 8 of 1,500", "stopped in round 11: 12 of 1,500", "stopped in round 4: 5 of 1,500"]
    assert {without_numbers(text) for text in stopped} == {"stopped in round 0: 0 of 0"}
    assert with_ranges(stopped) == "stopped in round 4–11: 5–12 of 1,500"
    assert with_ranges(["8×8 cnn2 at ε = 1e-5, 1,000"]) == "8×8 cnn2 at ε = 1e-5, 1,000"
    assert with_ranges(["lost 0.5", "lost 1e-3", "lost 1,200"]) == "lost 1e-3–1,200"
    assert without_numbers("cnn2 fails") != without_numbers("cnn3 fails")
