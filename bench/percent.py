"""How a share is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fedarena.summary import Mean


def percent(m: Mean) -> str:
    """A share in percent with its interval; where Student's goes beyond [0, 1], cut to it and given by its ends."""
    value = f"{100 * m.value:.0f}"
    if m.half is None:
        return f"{value} %"
    low, high = m.value - m.half, m.value + m.half
    if low < 0 or high > 1:
        return f"{value} % ({100 * max(0.0, low):.0f} to {100 * min(1.0, high):.0f} %)"
    return f"{value} ± {100 * m.half:.0f} %"
