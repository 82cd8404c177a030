"""The strength z of ALIE (Baruch, Baruch & Goldberg, NeurIPS 2019, Section 3.2), which other attacks take over.

    s = ⌊n/2 + 1⌋ − m                          honest supporters needed for a majority
    z = Φ⁻¹((n − m − s)/(n − m))               s honest uploads lie farther out

n are all clients, m the corrupted ones.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

from fedarena.contracts.poisoning import Poisoning


class ByALIEsStrength(Poisoning):
    """An attack with an option z, whose default is ALIE's formula."""

    options: Any

    @property
    def z(self) -> float | None:
        """The z that is set, else the paper's."""
        return self.options.z if self.options.z is not None else z_max(self.knowledge.clients, self.knowledge.corrupted)

    @property
    def strengths(self) -> dict[str, float]:
        z = self.z
        return {"z": z} if self.options.z is None and z is not None else {}


def z_max(n: int, m: int) -> float | None:
    """The paper's z for m corrupted clients of n; None where no honest supporter is needed (s ≤ 0) or left."""
    s = n // 2 + 1 - m
    if not 0 < s < n - m:
        return None
    return NormalDist().inv_cdf((n - m - s) / (n - m))
