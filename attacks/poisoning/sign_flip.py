"""Sign flipping: every colluder sends −k times the upload of the protocol (Li et al. 2019, Section 5)."""

from __future__ import annotations

from fedarena.attacks.poisoning.cards.sign_flip import Options
from fedarena.contracts.poisoning import Poisoning, RoundView
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, scale


class SignFlip(Poisoning):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.sign_flip.Options`."""

    options: Options
    tunes = {"scale": (0.5, 1.0, 2.0, 4.0, 10.0, 50.0)}  # noqa: RUF012  (a ClassVar of the base)
    only_length = ("scale",)

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        return scale(-self.options.scale, view.own), memory
