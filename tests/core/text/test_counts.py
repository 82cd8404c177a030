"""Numbers of things in words."""

from __future__ import annotations

from fedarena.core.text.numbers import plural


def test_one_is_singular_and_thousands_are_parted() -> None:
    assert plural(1, "trial") == "1 trial"
    assert plural(0, "trial") == "0 trials"
    assert plural(1506, "was", "were") == "1,506 were"
