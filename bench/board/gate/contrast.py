"""One score before and after, seed by seed."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from statistics import fmean

from fedarena.board.gate.jumps import gap


@dataclass(frozen=True)
class Contrast:
    """A score of both boards over the seeds that both have, in the same order.

    Attributes:
        place: what identifies the score on both boards.
        kind: a group of scores that are about equally noisy: the goal of an inference attack, `integrity`, `utility`.
        axis: privacy, integrity or utility.
        seeds: the seeds that both boards have.
        base, new: one score a seed.
        effect: the least change that matters.
    """

    place: Hashable
    kind: str
    axis: str
    seeds: tuple[int, ...]
    base: tuple[float, ...]
    new: tuple[float, ...]
    effect: float

    @cached_property
    def differences(self) -> tuple[float, ...]:
        """new − base."""
        return tuple(b - a for a, b in zip(self.base, self.new, strict=True))

    @cached_property
    def difference(self) -> float:
        """The mean difference."""
        return fmean(self.differences)

    @cached_property
    def variance(self) -> float:
        """The variance of the differences, with n − 1 degrees of freedom."""
        return fsum((d - self.difference) ** 2 for d in self.differences) / (len(self.differences) - 1)

    @property
    def identical(self) -> bool:
        """Whether every seed has the very same score, which is what the same code gives on the same machine."""
        return self.base == self.new

    @cached_property
    def gap(self) -> float:
        """See `fedarena.board.gate.jumps.gap`."""
        return gap(self.base, self.new)

    @property
    def ranges(self) -> tuple[float, float]:
        """Largest minus least score, for each board."""
        return max(self.base) - min(self.base), max(self.new) - min(self.new)

    @property
    def large(self) -> bool:
        """Whether the score moved by at least `effect`; equality counts in spite of rounding."""
        return abs(self.difference) >= self.effect - 1e-9
