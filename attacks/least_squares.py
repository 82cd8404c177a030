"""Gradient matching by least squares, as DLG and iDLG do it: the relative squared distance, by L-BFGS or Adam."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from torch import Tensor

from fedarena.attacks.adam import adam
from fedarena.attacks.lbfgs import Evaluate, Minima, minimise
from fedarena.attacks.matching import Matching, Objective, lowest
from fedarena.attacks.matching import Options as MatchingOptions

HISTORY = 100
"""Pairs that L-BFGS remembers per start."""

RACE = (100, 200, 400)
"""Iterations after which L-BFGS goes on with the better half of the starts."""


class Options(MatchingOptions, Protocol):
    """What the options of these attacks have."""

    @property
    def optimizer(self) -> str: ...
    @property
    def iterations(self) -> int: ...
    @property
    def lr(self) -> float: ...
    @property
    def tolerance(self) -> float: ...


class LeastSquares(Matching):
    """The search; where labels come from is left to subclasses.

    Where the observation has a simulator that is easier to descend (`Observation.rough`), the starts descend that, and
    the lowest goes on with the exact one.
    """

    options: Options

    def search(self, objectives: Sequence[Objective], start: Tensor) -> Minima:
        descend, spent = self._lbfgs if self.options.optimizer == "lbfgs" else self._adam, 0
        for objective in objectives:
            found = lowest(descend(objective.evaluate, start))
            spent, start = spent + found.evaluations, found.points
        return replace(found, evaluations=spent)

    def _lbfgs(self, evaluate: Evaluate, start: Tensor) -> Minima:
        o = self.options
        return minimise(evaluate, start, o.iterations, HISTORY, target=o.tolerance, race=RACE, patience=True)

    def _adam(self, evaluate: Evaluate, start: Tensor) -> Minima:
        o = self.options
        return adam(evaluate, start, o.iterations, o.lr, o.tolerance)
