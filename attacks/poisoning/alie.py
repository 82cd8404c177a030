"""ALIE, "A Little Is Enough" (Baruch, Baruch & Goldberg, NeurIPS 2019, Algorithm 3).

    every colluder sends μ − z·σ, coordinate by coordinate

μ and σ are mean and standard deviation of the honest uploads; `helpers/alie_strength.py` has the paper's z.
"""

from __future__ import annotations

from fedarena.attacks.poisoning.cards.alie import Options
from fedarena.attacks.poisoning.helpers.alie_strength import ByALIEsStrength
from fedarena.attacks.poisoning.helpers.honest_estimate import honest_rows, mean_and_deviation, needs_two, same
from fedarena.contracts.poisoning import RoundView
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable


class ALIE(ByALIEsStrength):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.alie.Options`."""

    options: Options
    knowledge_levels = ("own", "omniscient")
    tunes = {"z": (0.25, 0.5, 1.0, 1.5, 2.0, 4.0, 10.0)}  # noqa: RUF012  (a ClassVar of the base)

    def applies(self) -> NotApplicable | None:
        n, m, z = self.knowledge.clients, self.knowledge.corrupted, self.z
        if self.options.tune > 1:
            z = 1.0  # tuning chooses z in any case: the first run takes the formula's, the others take a grid
        if z is None:
            return NotApplicable(
                f"the paper's z is not defined for {m} corrupted of {n} clients, who need or have no supporters: "
                "set z, or tune=2 or more"
            )
        if z <= 0:
            return NotApplicable(
                f"with {m} of {n} clients the paper's z is {z:.2f}, which does no harm: set z, or tune=2 or more"
            )
        return needs_two(self.knowledge, "the standard deviation")

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        mean, deviation = mean_and_deviation(honest_rows(self.knowledge, view))
        z = self.z or 0.0  # undefined only where one is tuned, and this is the first that is tried
        return same(mean - z * deviation, view), memory
