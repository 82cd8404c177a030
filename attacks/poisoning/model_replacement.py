"""Model replacement with constrain-and-scale (Bagdasaryan, Veit, Hua, Estrin & Shmatikov 2020, Algorithm 1).

    a colluder trains X from the broadcast G, with the loss  alpha·L + (1 − alpha)·‖X − G‖²
    sent = scale·(G − X)/η,  scale = n_t/f_t by default, so that the round's mean is replaced

`fedarena.attacks.poisoning.helpers.local_backdoor` has the training and the server's step η.

Two disguises are of this package. H are the uploads h_i that the colluders would send by the protocol, ρ the median of
their pairwise cosines, ℓ the median of their lengths, u_i what would be sent, and μ the mean of H:

    cosine    sent_i = ℓ·unit(c·unit(μ) + √(1 − c²)·unit(u_i − its part along μ)),  c = ρ/κ
              κ the median of cos(h_i, mean of the other h): so the cosine with honest uploads is theirs, ρ
    decorrelated
              sent_i = ℓ·(a·unit(Σ_j u_j) + √(1 − a²)·e_i),  a² = (ρ(f_t − 1) + 1)/f_t
              e_i unit vectors that are orthogonal to Σ_j u_j, sum to zero, and stay the same in all rounds: so the
              pairwise cosines are ρ, and the mean of what is sent has no e_i
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import normalize

from fedarena.attacks.poisoning.cards.model_replacement import Options
from fedarena.attacks.poisoning.helpers.local_backdoor import LocalBackdoor
from fedarena.contracts.poisoning import RoundView
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, row, rows, shaped
from fedarena.core.threat import NotApplicable
from fedarena.problem.local_training import Loss

SEED = "sybils"
"""The seed of the e_i in the memory."""


class ModelReplacement(LocalBackdoor):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.model_replacement.Options`."""

    options: Options
    name = "model-replacement"

    def applies(self) -> NotApplicable | None:
        if self.options.disguise != "none" and self.knowledge.corrupted < 2:
            return NotApplicable(
                f"with disguise={self.options.disguise} it compares the corrupted clients' own uploads, and there is "
                "only 1: needs 2"
            )
        return super().applies()

    def loss(self, down: Tensors) -> Loss:
        alpha, plain = self.options.alpha, self.knowledge.task.loss

        def constrained(params: Tensors, x: Tensor, y: Tensor) -> Tensor:
            away = torch.stack([(params[name] - g).square().sum() for name, g in down.items()]).sum()
            return alpha * plain(params, x, y) + (1 - alpha) * away

        return plain if alpha == 1 else constrained

    def factor(self, view: RoundView) -> float:
        return view.participants / view.size if self.options.scale is None else self.options.scale

    def sends_as(self, sent: Tensors, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        """A colluder that is alone in its round has nothing to compare with, and sends what training gave."""
        if self.options.disguise == "none" or view.size < 2:
            return sent, memory
        honest, like = rows(view.own), row(view.own, 0)
        if self.options.disguise == "cosine":
            return shaped(held_to(rows(sent), honest), like), memory
        if SEED not in memory:
            memory = {**memory, SEED: torch.tensor(rng.integer(62))}
        own = Rng(int(memory[SEED]))
        parts = torch.stack([torch.randn(honest.shape[1], generator=own.child(c).torch()) for c in view.clients])
        return shaped(decorrelated(rows(sent), honest, parts.to(honest)), like), memory


def held_to(sent: Tensor, honest: Tensor) -> Tensor:
    """Uploads [f, d] with the length of honest ones, and their cosine with other honest uploads; f ≥ 2."""
    mean = normalize(honest.mean(0), dim=0)
    others = (honest.sum(0) - honest) / (len(honest) - 1)
    kappa = float(torch.nn.functional.cosine_similarity(honest, others).median())
    rho = typical_cosine(honest)
    c = min(1.0, max(0.0, rho / kappa)) if kappa > 0 else 0.0
    rest = normalize(sent - (sent @ mean)[:, None] * mean, dim=1)
    held: Tensor = honest.norm(dim=1).median() * (c * mean + math.sqrt(1 - c * c) * rest)
    return held


def decorrelated(sent: Tensor, honest: Tensor, parts: Tensor) -> Tensor:
    """Uploads [f, d] of one common direction, with the lengths and the pairwise cosines of honest ones; f ≥ 2.

    Args:
        parts: a vector of each colluder's own [f, d], before it is made orthogonal and centred.
    """
    f, common = len(sent), normalize(sent.sum(0), dim=0)
    parts = normalize(parts - (parts @ common)[:, None] * common, dim=1)
    parts = normalize(parts - parts.mean(0), dim=1)
    a = math.sqrt(min(1.0, max(0.0, (typical_cosine(honest) * (f - 1) + 1) / f)))
    apart: Tensor = honest.norm(dim=1).median() * (a * common + math.sqrt(1 - a * a) * parts)
    return apart


def typical_cosine(x: Tensor) -> float:
    """The median of the cosines of all pairs of rows."""
    unit = normalize(x, dim=1)
    i, j = torch.triu_indices(len(x), len(x), 1)
    return float((unit @ unit.T)[i, j].median())
