"""Making rules and calls for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor

from fedarena.contracts.aggregator import Aggregator, Wrapper
from fedarena.core import registry

NAMES = registry.registries()["aggregator"].names()
WRAPPERS = [n for n in NAMES if issubclass(registry.find("aggregator", n).load(), Wrapper)]
RULES = [n for n in NAMES if n not in WRAPPERS]
ROBUST = [n for n in RULES if n not in ("mean", "foolsgold")]
"""FoolsGold is no guard against far rows: it looks for alike ones."""

tried = settings(deadline=None, max_examples=60)
"""How often a property is tried; the first call of a rule imports it, so that no deadline can hold."""


def rule(name: str, inner: Aggregator | None = None, **options: Any) -> Aggregator:
    """A rule of the registry; options by their field names."""
    card = registry.find("aggregator", name)
    more = () if inner is None else (inner,)
    made: Aggregator = card.load()(card.options(**options), *more)
    return made


@dataclass(frozen=True)
class Uploads:
    """n rows around a common point, and how many are expected to be corrupted."""

    x: Tensor
    f: int

    @property
    def rows(self) -> list[list[float]]:
        found: list[list[float]] = self.x.tolist()
        return found


@st.composite
def uploads(draw: st.DrawFn, needs: Callable[[int], int] = lambda f: 2 * f + 3, most: int = 6) -> Uploads:
    """[3..15, 1..40] float64 with n ≥ needs(f)."""
    f = draw(st.integers(0, most).filter(lambda f: needs(f) <= 15))
    n, d = draw(st.integers(max(3, needs(f)), 15)), draw(st.integers(1, 40))
    g = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    offset = draw(st.sampled_from([0.0, 1.0, 30.0]))
    x = torch.randn(n, d, generator=g, dtype=torch.float64) + offset * torch.randn(d, generator=g, dtype=torch.float64)
    return Uploads(x, f)
