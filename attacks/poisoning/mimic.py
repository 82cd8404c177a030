"""Mimic (Karimireddy, He & Jaggi, ICLR 2022, Section 3.2 and Appendix B): all colluders copy one honest client.

Nothing that they send is abnormal. But one client's upload then counts f + 1 times, which does harm where clients
differ. The client to copy is the one farthest along the direction z of largest variance among the honest uploads x_i:

    warm-up   μ ← running mean of the x_i;   z ← normalised t·z + Σ_i (x_i − μ)⟨x_i − μ, z⟩  (Oja)
              S_i ← S_i + ⟨z, x_i⟩
    then      copy i* = argmax_i |S_i|
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from fedarena.attacks.poisoning.cards.mimic import Options
from fedarena.attacks.poisoning.helpers.honest_estimate import same
from fedarena.contracts.poisoning import Poisoning, RoundView
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, rows


class Mimic(Poisoning):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.mimic.Options`.

    Memory: rounds t, mean [d], direction z [d], score S [clients].
    """

    options: Options
    knowledge_levels = ("omniscient",)

    def begins_after(self, first: int) -> int:
        return first + self.options.warmup

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        if not view.honest_clients:
            return view.own, memory
        x = rows(view.honest)
        # If a protocol changes the length of its uploads from round to round, earlier statistics have no meaning.
        if not memory or len(memory["mean"]) != x.shape[1]:
            memory = self._start(x, rng)
        clients = torch.tensor(view.honest_clients, device=x.device)
        if int(memory["rounds"]) < self.options.warmup:
            return view.own, self._learn(x, clients, memory)
        return same(x[memory["score"][clients].abs().argmax()], view), memory

    def _start(self, x: Tensor, rng: Rng) -> Tensors:
        z = torch.randn(x.shape[1], generator=rng.child("direction").torch()).to(x)
        return {
            "rounds": torch.tensor(0),
            "mean": torch.zeros_like(z),
            "direction": normalize(z, dim=0),
            "score": x.new_zeros(self.knowledge.clients),
        }

    def _learn(self, x: Tensor, clients: Tensor, memory: Tensors) -> Tensors:
        t, z = int(memory["rounds"]), memory["direction"]
        mean = (t * memory["mean"] + x.mean(0)) / (t + 1)
        centred = x - mean
        # It has length 1 like z, so that the speed at which z turns does not depend on the length of uploads.
        z = normalize(t * z + normalize((centred @ z) @ centred, dim=0), dim=0)
        score = memory["score"].index_add(0, clients, x @ z)
        return {"rounds": torch.tensor(t + 1), "mean": mean, "direction": z, "score": score}
