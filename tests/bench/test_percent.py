"""Shares as they are printed."""

from __future__ import annotations

import pytest

from fedarena.percent import percent
from fedarena.summary import Mean


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
