"""How many clients are computed at once."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

LEAST = 5
"""Clients at once, at least."""
TOGETHER = 2**17
"""More clients at once, as long as all have no more parameters together: they fit into a core's share of the cache."""


def clients_at_once(params: Mapping[str, Tensor]) -> int:
    """The number of clients that are computed at once.

    Args:
        params: what one client begins with.
    """
    return max(LEAST, TOGETHER // max(1, sum(p.numel() for p in params.values())))
