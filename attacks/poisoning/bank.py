"""Banked reputation: help the model until the server trusts the senders, then strike.

The attack is made for servers that remember scores of clients, such as the second stage of the two-stage protocol, in
which scores never fade. With v the direction and g the upload (the server subtracts it):

    bank      v = ∇L on own samples                     better than any honest upload, which is noisy
    strike    labels    v = ∇L' on own samples with labels y + 1 mod classes
              sideways  v = ∇L' without its component along ∇L, which a score against ∇L does not see (`tilt` adds a
                        little of ∇L, which such a score rewards)
              ascent    v = −∇L

    disguise  rank    g = rank map of v (see `gaussianize`): norm and distribution of honest noise without its
                      randomness
              noise   g = v·ℓ/‖v‖ + N(0, σ_u²I), ℓ the length of one sample's noiseless upload: what a batch whose
                      samples all agree would give, and the protocol's own noise
              plain   g = v·ℓ/‖v‖, ℓ the mean length of what the colluders would send by the protocol

    cancel    if noise z is part of an upload, −z is part of the colluder's next one: for servers that average over
              rounds

    decoys    during a strike so many colluders send 10·‖g‖·unit(z/√d + 4/√d·g/‖g‖), z ~ N(0, I): for rules such as DnC,
              which drop the uploads farthest along the direction of largest variance. That direction is now the
              decoys'. By the second term the strikers lie four standard deviations of noise nearer to the decoys than
              honest uploads do, so that honest uploads are dropped

It banks in the rounds before turn·T. From then on it strikes until the end, or burn_rounds rounds of striking and
bank_rounds rounds of banking alternate.

Wrong labels do most harm: the model settles below chance, where the server's reference gradient does not oppose the
uploads. Ascent drives the model to where honest gradients and their scores grow.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fedarena.attacks.poisoning.cards.bank import Options
from fedarena.attacks.poisoning.helpers.classes import require_classes
from fedarena.attacks.poisoning.helpers.gaussianize import gaussianize
from fedarena.attacks.poisoning.rank_map import NO_NOISE
from fedarena.contracts.poisoning import AttackerKnowledge, Poisoning, RoundView
from fedarena.core.errors import UserError
from fedarena.core.gradients import gradient
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, row, rows, shaped
from fedarena.core.threat import NotApplicable

FAR, LEAN = 10.0, 4.0
"""The length of decoys in uploads, and how many standard deviations of noise strikers are nearer to them."""


class Bank(Poisoning):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.bank.Options`."""

    options: Options
    knowledge_levels = ("own", "omniscient")
    tunes_begin = True
    tunes = {"turn": (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95)}  # noqa: RUF012  (a ClassVar of the base)

    def __init__(self, options: Any, knowledge: AttackerKnowledge) -> None:
        super().__init__(options, knowledge)
        if self.options.tune and self.options.tune_rounds:
            raise UserError(
                f"attack bank: option 'tune_rounds' is {self.options.tune_rounds}, allowed: 0, because a short run "
                "may end before the strike"
            )
        if self.options.decoys >= knowledge.corrupted:
            raise UserError(
                f"attack bank: option 'decoys' is {self.options.decoys}, allowed: fewer than option 'corrupted', which "
                f"is {knowledge.corrupted}, or no client strikes"
            )
        if self.options.strike != "ascent":
            require_classes(knowledge, "bank", f"option 'strike' is {self.options.strike}")
        noisy, disguise = knowledge.defense.noise_std > 0, self.options.disguise
        self.disguise = {True: "rank", False: "plain"}[noisy] if disguise == "auto" else disguise
        if self.disguise == "rank" and self.options.strength > 1:
            raise UserError(
                f"attack bank: option 'strength' is {self.options.strength:g}, allowed with disguise=rank: 1 at most, "
                "because it is a cosine"
            )
        if self.options.cancel and not self._draws_noise:
            raise UserError(
                f"attack bank: option 'cancel' is true, allowed with disguise={disguise} and strength="
                f"{self.options.strength:g}: false, because the upload holds no noise (disguise=noise does, and "
                "disguise=rank where strength is below 1)"
            )

    def applies(self) -> NotApplicable | None:
        if self.disguise in ("rank", "noise") and not self.knowledge.defense.noise_std > 0:
            return NotApplicable(NO_NOISE)
        return None

    def begins_after(self, first: int) -> int:
        rounds = range(first, self.knowledge.task.schedule.rounds)
        return next((t for t in rounds if self.strikes(t)), self.knowledge.task.schedule.rounds)

    def strikes(self, round: int) -> bool:
        """Whether this round is one of the harmful ones."""
        since = round - self.knowledge.task.schedule.at(self.options.turn)
        burn, bank = self.options.burn_rounds, self.options.bank_rounds
        return since >= 0 and (not burn or since % (burn + bank) < burn)

    def culminates(self, round: int) -> bool:
        return self.strikes(round) and not self.strikes(round + 1)

    @property
    def _draws_noise(self) -> bool:
        """Whether noise of the attacker's own is part of an upload."""
        return self.disguise == "noise" or (self.disguise == "rank" and self.options.strength < 1)

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        x, y = self.knowledge.data.draw(self.options.samples, rng.child("samples"))
        v, like, generator = self._direction(view, x, y), row(view.own, 0), rng.child("noise").torch()
        z = None
        if self._draws_noise:
            z, memory = self._noise(v, view, memory, generator)
        if self.disguise == "rank":
            sent = self._ranked(v, z, view.size, generator)
        else:
            length = (
                rows(view.own).norm(dim=1).mean()
                if self.disguise == "plain"
                else flatten(self.knowledge.defense.expected_upload(view.down, x[:1], y[:1])).norm()
            )
            sent = (self.options.strength * length * v).repeat(view.size, 1)
            if z is not None:
                sent = sent + self.knowledge.defense.noise_std * z
        if self.options.decoys and self.strikes(view.round):
            sent = _behind(sent, min(self.options.decoys, view.size - 1), rng.child("decoys").torch())
        return shaped(sent, like), memory

    def _direction(self, view: RoundView, x: Tensor, y: Tensor) -> Tensor:
        """v, of length 1. Omniscient attackers add the mean honest upload, as far as it is not noise."""
        sign = -1.0 if self.strikes(view.round) else 1.0
        if sign < 0 and self.options.strike != "ascent":
            v = self._gradient(view, x, (y + 1) % self.knowledge.task.n_classes)
            if self.options.strike == "sideways":
                right = self._gradient(view, x, y)
                v = _unit(_unit(v - (v @ right) * right) + self.options.tilt * right)
        else:
            v = sign * self._gradient(view, x, y)
        if view.honest_clients:
            seen = rows(view.honest)
            mean = seen.mean(0)
            noise = self.knowledge.defense.noise_std**2 * mean.numel() / len(seen)
            signal = float((1 - noise / mean.square().sum().clamp_min(1e-30)).clamp_min(0))
            v = v + sign * signal * _unit(mean)
        return _unit(v)

    def _gradient(self, view: RoundView, x: Tensor, y: Tensor) -> Tensor:
        """∇L, of length 1, if the broadcast is the model in clear and clients send gradients; else an honest upload.

        The second stage compares uploads with ∇L. The mean of bounded per-sample gradients, which a client of a DP
        protocol would send, scores less.
        """
        task, down, init = self.knowledge.task, view.down, self.knowledge.init
        clear = {name: t.shape for name, t in down.items()} == {name: t.shape for name, t in init.items()}
        if not (clear and task.schedule.fedsgd):
            return _unit(flatten(self.knowledge.defense.expected_upload(down, x, y)))
        return _unit(flatten(gradient(task.loss, dict(down), x, y)))

    def _noise(
        self, like: Tensor, view: RoundView, memory: Tensors, generator: torch.Generator
    ) -> tuple[Tensor, Tensors]:
        """Noise N(0, I) [f_t, d]. With `cancel`, a colluder with `owed` noise gets minus that of its last round."""
        z = torch.randn(view.size, len(like), generator=generator).to(like)
        if not self.options.cancel:
            return z, memory
        owed = memory.get("owed", z.new_zeros(self.knowledge.clients, len(like)))
        members = torch.tensor(view.clients, device=z.device)
        due = owed[members]
        pays = due.any(dim=1, keepdim=True)
        z = torch.where(pays, -due, z)
        return z, {**memory, "owed": owed.index_copy(0, members, torch.where(pays, 0.0, z))}

    def _ranked(self, v: Tensor, z: Tensor | None, size: int, generator: torch.Generator) -> Tensor:
        """The rank map of v, or of v with noise z [f_t, d]: [f_t, d]. All rows are equal unless noise is drawn."""
        std, form, a = self.knowledge.defense.noise_std, self.options.form, self.options.strength
        if z is not None:
            v = a * gaussianize(v, 1.0, "quantiles", generator) + (1 - a * a) ** 0.5 * z
        elif form == "sample":
            v = v.repeat(size, 1)
        return gaussianize(v, std, form, generator).expand(size, -1)


def _unit(v: Tensor) -> Tensor:
    unit: Tensor = v / v.norm().clamp_min(1e-30)
    return unit


def _behind(sent: Tensor, decoys: int, generator: torch.Generator) -> Tensor:
    """Uploads [f_t, d], the first `decoys` of which are decoys for the others."""
    strike, d = sent[-1], sent.shape[1]
    z = torch.randn(decoys, d, generator=generator).to(sent) + LEAN * _unit(strike)
    far = FAR * strike.norm() * z / z.norm(dim=1, keepdim=True)
    return torch.cat([far, sent[decoys:]])
