"""Who shares masks and secrets with whom: everybody, or k neighbours (Bell, Bonawitz, Gascón, Lepoint & Raykova 2020).

The graph of k neighbours is a circle of the clients in random order, in which each is joined to the k/2 before it and
the k/2 behind it (a Harary graph; Section 3.2 and Algorithm 2). For C colluding clients and D that drop out, of n:

    exposed   some client has t or more colluders among its k neighbours      ≤ n P[Hypergeometric(n−1, C, k) ≥ t]
    apart     the honest clients left fall into parts, whose sums are learned ≤ n ((C + D)/n)^(k/2)
    lost      fewer than t of some client's k + 1 answer: the round fails     ≤ n P[Hypergeometric(n, D, k+1) > k+1−t]

Colluders do not choose their places, and the server, which draws the graph, does not choose it for them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from fedarena.core.rng import Rng

Circles = list[frozenset[int]]
"""For each client the clients that hold shares of its secrets, itself included."""


def circles(n: int, neighbours: int, rng: Rng) -> Circles:
    """Each client with its neighbours; with everybody where `neighbours` is 0, or not below n − 1."""
    if not 0 < neighbours < n - 1:
        return [frozenset(range(n))] * n
    order, half = rng.numpy().permutation(n).tolist(), neighbours // 2
    around = [frozenset(order[(i + step) % n] for step in range(-half, half + 1)) for i in range(n)]
    return [circle for _, circle in sorted(zip(order, around, strict=True), key=lambda pair: pair[0])]


def sums_seen(of: Circles, alive: Collection[int], colluders: Collection[int]) -> list[frozenset[int]]:
    """The groups of honest clients alive, the sum of each of which server and colluders learn.

    No mask of theirs is left between two groups. One group alone is the whole sum, which all learn. It holds where no
    client has as many colluders around it as give its secrets.
    """
    left, groups = set(alive) - set(colluders), list[frozenset[int]]()
    while left:
        group, edge = set[int](), {min(left)}
        while edge:
            group |= edge
            left -= edge
            edge = {v for u in edge for v in of[u] if v in left}
        groups.append(frozenset(group))
    return groups


@dataclass(frozen=True)
class Risk:
    """Bounds on what goes wrong in a round; see the module's docstring."""

    exposed: float
    apart: float
    lost: float


def risk(n: int, neighbours: int, threshold: int, colluders: int, dropping: int) -> Risk:
    """The bounds for n clients with `neighbours` each, of whose circle `threshold` unmask."""
    from scipy.stats import hypergeom

    k, t = neighbours, threshold
    return Risk(
        exposed=n * float(hypergeom.sf(t - 1, n - 1, colluders, k)),
        apart=n * ((colluders + dropping) / n) ** (k // 2),
        lost=n * float(hypergeom.sf(k + 1 - t, n, dropping, k + 1)),
    )
