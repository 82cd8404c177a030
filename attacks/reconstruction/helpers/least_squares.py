"""Gradient matching by least squares, as DLG and iDLG do it: the relative squared distance, by L-BFGS or Adam.

What was observed need not determine an image: K numbers alone do not determine more than K pixels. Two priors of images
choose among those that explain it, with the weights of the options `tv` and `outside`:

    tv·(mean|dx'| + mean|dy'|)      outside·mean dist(x', [0, 1])²

The weight of a prior also pulls the result away from the truth. With `decades` the search continues from its end with a
tenth of `tv`, that many times. So it approaches the image of least variation among those that explain all of the
observation, as in compressed sensing (Candès, Romberg & Tao 2006).

In the adaptive form, with `prior=population`, the search is for z in x' = μ + C^½ z. There μ and C are the mean and the
covariance of the attacker's own samples (`image_distribution`), for which z is N(0, I). With d pixels in all, the term

    unlikely·‖z‖²/d

is added to the others, and `decades` lower it like `tv`. So the search approaches the likeliest image under N(μ, C)
among those that explain all of the observation, as far as descent finds it. Without that term, descent from z near 0
comes near it, because it never leaves the span of the gradients on its way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from torch import Tensor

from fedarena.attacks.reconstruction.helpers.adam import adam
from fedarena.attacks.reconstruction.helpers.lbfgs import Evaluate, Minima, minimise
from fedarena.attacks.reconstruction.helpers.matching import Matching, MatchingObjective, lowest
from fedarena.attacks.reconstruction.helpers.matching import Options as MatchingOptions
from fedarena.contracts.observation import Observation
from fedarena.core.errors import UserError

HISTORY = 100
"""Pairs that L-BFGS remembers per start."""

CORNER = 1e-3
"""Differences between neighbouring pixels below which the total variation is smooth: a quarter of a grey level."""

RACE = (100, 200, 400)
"""Iterations after which L-BFGS continues with the better half of the starts."""


class Options(MatchingOptions, Protocol):
    """The options that all these attacks have."""

    @property
    def optimizer(self) -> str: ...
    @property
    def iterations(self) -> int: ...
    @property
    def lr(self) -> float: ...
    @property
    def tolerance(self) -> float: ...
    @property
    def decades(self) -> int: ...
    @property
    def prior(self) -> str: ...
    @property
    def unlikely(self) -> float: ...
    @property
    def outside(self) -> float: ...


class LeastSquares(Matching):
    """The search; subclasses decide the source of labels.

    If the observation has a simulator that is easier to minimise (`Observation.rough`), the search begins with it, and
    the best start continues with the exact one.
    """

    options: Options

    def __init__(self, options: Options) -> None:
        """Raise UserError if `decades` are to lower a weight and there is none."""
        super().__init__(options)
        self.needs_population = options.prior == "population"
        if options.decades and not (options.tv or (self.needs_population and options.unlikely)):
            raise UserError(
                f"attack {self.name}: option 'decades' is {options.decades}, allowed: 0 without a weight 'tv' or "
                "'unlikely' to lower"
            )

    def at_once(self, seen: Observation) -> int | None:
        return 1 if self.options.restarts == 1 else None  # a single start takes longer under `vmap`

    def search(self, objectives: Sequence[MatchingObjective], start: Tensor) -> Minima:
        o, spent = self.options, 0
        descend = self._lbfgs if o.optimizer == "lbfgs" else self._adam
        unlikely = o.unlikely if objectives[-1].coordinates is not None else 0.0
        stages = [replace(each, corner=CORNER, outside=o.outside, unlikely=unlikely) for each in objectives]
        fainter = [replace(stages[-1], tv=o.tv / 10**i, unlikely=unlikely / 10**i) for i in range(1, o.decades + 1)]
        for objective in stages + fainter:
            best = lowest(descend(objective.evaluate, start))
            spent, start = spent + best.evaluations, best.points
        return replace(best, evaluations=spent)

    def longest(self, stages: int) -> int:
        return (stages + self.options.decades) * (self.options.iterations + 1)

    def _lbfgs(self, evaluate: Evaluate, start: Tensor) -> Minima:
        o = self.options
        return minimise(evaluate, start, o.iterations, HISTORY, target=o.tolerance, race=RACE, patience=True)

    def _adam(self, evaluate: Evaluate, start: Tensor) -> Minima:
        o = self.options
        return adam(evaluate, start, o.iterations, o.lr, o.tolerance)
