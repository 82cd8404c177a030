"""AGR-tailored (Shejwalkar & Houmansadr, NDSS 2021): the farthest step that the server's own rule lets through.

    every colluder sends μ + γ p,   γ maximises ‖R(uploads) − μ‖
    p    = −μ/‖μ‖ (unit),  −sign(μ) (sign),  −σ (std)

γ is searched by halving steps from γ = 10: a step up where it did more harm than the γ before, else a step down.
"""

from __future__ import annotations

from torch import Tensor

from fedarena.attacks.poisoning.cards.agr_tailored import Options
from fedarena.attacks.poisoning.helpers.honest_estimate import mean_and_deviation
from fedarena.attacks.poisoning.helpers.known_rule import AgainstKnownRule, Distance
from fedarena.attacks.poisoning.helpers.min_distance import direction

FIRST = 10.0
"""The γ that the authors try first."""
SMALLEST = 1e-5
"""The step below which the authors' search ends."""


class AGRTailored(AgainstKnownRule):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.agr_tailored.Options`."""

    options: Options

    def line(self, honest: Tensor) -> tuple[Tensor, Tensor]:
        mean, deviation = mean_and_deviation(honest)
        return mean, direction(mean, deviation, self.options.perturbation)

    def search(self, distance: Distance) -> float:
        return halving(distance)


def halving(distance: Distance) -> float:
    """The γ with the largest distance among those that the authors' search tries.

    γ starts at 10 and the step at 5. γ grows by a step where it did more harm than the γ before, at first than γ = 0,
    else it falls by one; then the step is halved, until it is below 1e-5.
    """
    gamma, step = FIRST, FIRST / 2
    best, farthest = 0.0, distance(0.0)
    before = farthest
    while step > SMALLEST:
        harm = distance(gamma)
        if harm > farthest:
            best, farthest = gamma, harm
        gamma += step if harm > before else -step
        before, step = harm, step / 2
    return best
