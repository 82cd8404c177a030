"""ROP, relocated orthogonal perturbation (Ozfatura, Ozfatura, Küpçü & Gündüz 2023, against centered clipping).

A server that clips uploads around its last aggregate m lets pass what lies near m. So the upload starts from there, and
leaves at a right angle to where the federation goes, so that the angle to honest uploads says little.

    a = π·m + (1 − π)·μ                              where the upload starts
    r = λ·m + (1 − λ)·μ                              where the federation goes
    p = 1 − (⟨1, r⟩/‖r‖²)·r                          ones without their component along r
    every colluder sends  a + z·(sin(φ)·p/‖p‖ + cos(φ)·r/‖r‖)

μ is the mean of the honest uploads, m the server's last step as two broadcasts show it (μ in the first round for r, 0
for a), z ALIE's strength.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import normalize

from fedarena.attacks.poisoning.cards.rop import Options
from fedarena.attacks.poisoning.helpers.alie_strength import ByALIEsStrength
from fedarena.attacks.poisoning.helpers.honest_estimate import honest_rows, same
from fedarena.attacks.poisoning.helpers.plain_broadcast import direction_since, needs_plain_broadcast, recalled, stored
from fedarena.contracts.poisoning import RoundView
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable

BEFORE = "before."
"""Prefix of the last broadcast in the memory."""


class ROP(ByALIEsStrength):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.rop.Options`."""

    options: Options
    knowledge_levels = ("omniscient", "own")
    tunes = {"z": (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0)}  # noqa: RUF012  (a ClassVar of the base)

    def applies(self) -> NotApplicable | None:
        z = 1.0 if self.options.tune > 1 else self.z
        if z is None or z <= 0:
            m, n = self.knowledge.corrupted, self.knowledge.clients
            return NotApplicable(f"ALIE's z is not above 0 for {m} corrupted of {n} clients: set z, or tune=2 or more")
        return needs_plain_broadcast(self.knowledge)

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        mean, before = honest_rows(self.knowledge, view).mean(0), recalled(memory, BEFORE)
        last = direction_since(before, view.down, self.knowledge).to(mean) if before else None
        start = torch.zeros_like(mean) if last is None else last
        start = self.options.pi * start + (1 - self.options.pi) * mean
        towards = mean if last is None else self.options.lam * last + (1 - self.options.lam) * mean
        return same(start + (self.z or 0.0) * turned(towards, self.options.angle), view), stored(view.down, BEFORE)


def turned(r: Tensor, degrees: float) -> Tensor:
    """A unit vector [d] at an angle to r, in the plane of r and the ones."""
    along = normalize(r, dim=0)
    ones = torch.ones_like(r)
    across = normalize(ones - (ones @ along) * along, dim=0)
    angle = math.radians(degrees)
    return normalize(math.sin(angle) * across + math.cos(angle) * along, dim=0)
