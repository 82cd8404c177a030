"""IPM, inner product manipulation ("Fall of Empires", Xie, Koyejo & Gupta, UAI 2019).

    every colluder sends −ε·μ,    μ the mean of the honest uploads

The attack has succeeded when ⟨aggregate, μ⟩ ≤ 0. A small ε hides among honest uploads, a large one moves means.
"""

from __future__ import annotations

from fedarena.attacks.poisoning.cards.ipm import Options
from fedarena.attacks.poisoning.helpers.honest_estimate import honest_rows, same
from fedarena.contracts.poisoning import Poisoning, RoundView
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors


class IPM(Poisoning):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.ipm.Options`."""

    options: Options
    knowledge_levels = ("own", "omniscient")
    tunes = {"epsilon": (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0)}  # noqa: RUF012  (a ClassVar of the base)
    only_length = ("epsilon",)

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        return same(-self.options.epsilon * honest_rows(self.knowledge, view).mean(0), view), memory
