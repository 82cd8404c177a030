"""Many tests at once."""

from __future__ import annotations

from collections.abc import Sequence


def adjusted(ps: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the order given.

    With p sorted ascending, adjusted p_(i) = max over j <= i of min(1, (m − j + 1) p_(j)). Rejecting those at or
    below α keeps the chance of any false rejection at or below α, however the tests depend on each other.

    Source: Holm, A simple sequentially rejective multiple test procedure, 1979.
    """
    adjusted_ps, highest = [1.0] * len(ps), 0.0
    for rank, i in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[i]))
        adjusted_ps[i] = highest
    return adjusted_ps
