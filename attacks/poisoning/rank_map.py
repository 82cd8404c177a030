"""Rank map: it gives another attack's uploads the values of the noise that honest clients add.

    v_i = the upload of the inner attack              (a direction; its length does not matter)
    g_i = σ_u·Φ⁻¹((rank(v_i) − ½)/d)                  σ_u the noise on a coordinate of an honest upload

It attacks servers that accept uploads that look like N(0, σ_u²I), such as the first stage of the two-stage protocol.
The protocol's paper (Xiang et al. 2023, Section 4.6, Guideline 1) argues that a search for a particular order of d such
values costs O(d!). By the rearrangement inequality one sort gives the best order. Unlike honest uploads, g_i holds no
noise at all.
"""

from __future__ import annotations

from fedarena.attacks.poisoning.cards.rank_map import Options
from fedarena.attacks.poisoning.helpers.gaussianize import gaussianize
from fedarena.contracts.poisoning import Around, RoundView
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, row, rows, shaped
from fedarena.core.threat import NotApplicable

NO_NOISE = "the defense adds no noise to uploads, so that there is no noise to rearrange"


class RankMap(Around):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.rank_map.Options`."""

    options: Options
    keeps_length = False

    def applies(self) -> NotApplicable | None:
        return super().applies() if self.knowledge.defense.noise_std > 0 else NotApplicable(NO_NOISE)

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        sent, memory = self.inner.craft(view, memory, rng.child("inner"))
        std, generator = self.knowledge.defense.noise_std, rng.child("rank-map").torch()
        return shaped(gaussianize(rows(sent), std, self.options.form, generator), row(sent, 0)), memory
