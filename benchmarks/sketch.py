"""A sketched dense layer against the plain one, forward and backward (∂L/∂x, ∂L/∂weight, ∂L/∂bias).

layer   what a client computes each step: F.linear(x S, W̃, b), with S drawn before
+ draw  the same with a fresh S drawn in every step
round   all of a FedSGD round: a fresh S, W̃ = W S at the server, the layer, Γ Sᵀ at the server
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch
import torch.nn.functional as F
from side_by_side import Row, alternate, costlier, main
from torch import Tensor

from fedarena.core.rng import Rng
from fedarena.defenses.dbcl.sketch import DISTRIBUTIONS, Sketch, draw

CASES = ((784, 200, 50), (3200, 512, 50))
BAR = 2.2


def measure(repetitions: int) -> list[Row]:
    """One row a layer, law and scope."""
    rows = []
    for d, n, b in CASES:
        candidates = _candidates(d, n, b)
        spent = alternate(candidates, repetitions)
        work = f"{d}-{n}, batch {b}"
        rows += [costlier(work, name, "dense", spent, at_most=BAR) for name in candidates if name != "dense"]
    return rows


def _candidates(d: int, n: int, b: int) -> dict[str, Callable[[], object]]:
    g = Rng(0).torch()
    s = d // 2
    x, w, above = (torch.randn(*shape, generator=g) for shape in ((b, d), (n, d), (b, n)))
    bias = torch.randn(n, generator=g)
    leaves = [t.requires_grad_() for t in (x, w, bias)]

    def layer(sketch: Sketch, sketched: Tensor) -> tuple[Tensor, ...]:
        weight = sketched.detach().requires_grad_()
        return torch.autograd.grad(F.linear(sketch.apply(x), weight, bias), (x, weight, bias), above)

    def whole(sketch: Sketch) -> Tensor:
        with torch.no_grad():
            sketched = sketch.apply(w)
        _, gamma, _ = layer(sketch, sketched)
        return sketch.expand(gamma)

    found: dict[str, Callable[[], object]] = {
        "dense": lambda: torch.autograd.grad(F.linear(x, w, bias), leaves, above),
    }
    for distribution in DISTRIBUTIONS:
        once = draw(0, 0, d, s, distribution)
        sketched = once.apply(w.detach())
        seeds = itertools.count(1)  # `draw` remembers its answers, so that every seed must be new

        def fresh(distribution: str = distribution, seeds: itertools.count[int] = seeds) -> Sketch:
            return draw(next(seeds), 0, d, s, distribution)

        found[f"{distribution}: layer"] = lambda once=once, sketched=sketched: layer(once, sketched)
        found[f"{distribution}: layer + draw"] = lambda fresh=fresh, sketched=sketched: layer(fresh(), sketched)
        found[f"{distribution}: round"] = lambda fresh=fresh: whole(fresh())
    return found


if __name__ == "__main__":
    main(__doc__, measure, repetitions=101)
