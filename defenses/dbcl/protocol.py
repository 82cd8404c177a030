"""DBCL, Double-Blind Collaborative Learning (Zhang & Wang, "Matrix Sketching for Secure Collaborative
Machine Learning", ICML 2021), Section 4.2 and Appendix B.

    server → client   seed ψ (4 bytes), W̃ = W S of every dense and convolutional layer but the output,
                      biases and output layer in clear; a new S after every communication
    client            Z = (X S) W̃ᵀ + b;  backward Γ = Gᵀ (X S),  ∂L/∂X = (G W̃) Sᵀ
    client → server   Γ = ∂L/∂W̃ (FedSGD), or the sum of its local steps on Γ (FedAvg, S fixed meanwhile)
    server            ∂L/∂W = mean(Γ) Sᵀ;  W ← W − η ∂L/∂W          (Eq. 2)
    test time         the plain network with W, no sketch

(X S) W̃ᵀ = X (W̃ Sᵀ)ᵀ, so the client step is written as the plain network run with the rank-s weight
W̃ Sᵀ, for convolutions too, where S is shared by all patches (Appendix B.2). The client holds W̃ and S
and never touches W. Dense networks train in the faster form with X S (see `fedarena.problem.client_steps.stacked`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregator
from fedarena.contracts.defense import Broadcast, Cohort, Defense, Direction, State
from fedarena.contracts.observation import Disclosure, Reading
from fedarena.contracts.transcript import Seen
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.dbcl import model_estimate as dbcl_models
from fedarena.defenses.dbcl import readings as dbcl_views
from fedarena.defenses.dbcl.card import Options
from fedarena.defenses.dbcl.sketch import Sketch, draw
from fedarena.problem import client_steps as forms
from fedarena.problem.batch import Batch
from fedarena.problem.local_training import upload
from fedarena.problem.task import Task

SEED = "seed"


class DBCL(Defense):
    """The protocol; see the module's docstring."""

    options: Options
    sums = True

    def __init__(self, options: Options, task: Task, rule: Aggregator | None = None) -> None:
        super().__init__(options, task, rule)
        *hidden, _output = task.layers
        self.shapes: dict[str, torch.Size] = {f"{name}.weight": layer.weight.shape for name, layer in hidden}
        """Shape of every sketched weight W: [d_out, d_in], or [d_out, c, k, k] with d_in = c·k²."""
        if not self.shapes:
            raise UserError("defense dbcl: the model has no layer but the output, which is never sketched: give it one")

    # -- the protocol ------------------------------------------------------------------------------

    def broadcast(self, state: State, rng: Rng) -> Broadcast:
        seed = rng.child("seed").integer(31)
        down: Tensors = {SEED: torch.tensor([seed], dtype=torch.int32)}
        for layer, (name, w) in enumerate(state.params.items()):
            if name in self.shapes:
                flat = w.flatten(1)
                s = self._sketch_size(flat.shape[1], rng.child("size", layer))
                w = draw(seed, layer, flat.shape[1], s, self.options.hash).to(w.device).apply(flat)
            down[name] = w
        return Broadcast(down)

    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        start, sketches = self.open(down)
        return upload(self._loss(sketches), start, batch, self.task.schedule, _metric(sketches)), memory

    def clients(
        self, down: Tensors, batches: Sequence[Batch], memories: Sequence[Tensors], noises: Sequence[Tensors]
    ) -> tuple[Tensors, list[Tensors]]:
        start, sketches = self.open(down)
        ups = forms.uploads(self.task, self._loss(sketches), start, batches, _metric(sketches), sketches)
        return ups, list(memories)

    def direction(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        mean = self.combine(state, sent, ups, cohort, rng)
        return replace(mean, step=self.expand(mean.step, self.open(sent.down)[1]))

    def readings(
        self, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
    ) -> Sequence[Reading] | NotApplicable:
        return dbcl_views.readings(self, threat, seen, victims)

    def disclosure(self, threat: Threat, now: Seen) -> Disclosure | NotApplicable:
        """W̃ Sᵀ, the network that every client ran."""
        return super().disclosure(threat, replace(now, down=self.expand(*self.open(now.down))))

    def disclosures(
        self, threat: Threat, seen: Mapping[int, Seen], rounds: Sequence[int]
    ) -> Sequence[Disclosure] | NotApplicable:
        """As inherited; in the adaptive form the likeliest W given all sketches that were seen until then."""
        if threat.form == "paper" or threat.party == "server":
            return super().disclosures(threat, seen, rounds)
        return dbcl_models.likeliest(self, threat, seen, rounds)

    # -- its pieces --------------------------------------------------------------------------------

    def open(self, down: Tensors) -> tuple[Tensors, dict[str, Sketch]]:
        """What a client makes of the broadcast: its parameters, and S of every sketched one."""
        params = {name: t for name, t in down.items() if name != SEED}
        seed, sketches = int(down[SEED]), {}
        for layer, (name, w) in enumerate(params.items()):
            if name in self.shapes:
                d = self.shapes[name][1:].numel()
                sketches[name] = draw(seed, layer, d, w.shape[1], self.options.hash).to(w.device)
        return params, sketches

    def expand(self, tensors: Tensors, sketches: Mapping[str, Sketch]) -> Tensors:
        """Y ↦ Y Sᵀ in the plain model's shape, for every sketched parameter; the others as they are."""
        return {
            name: sketches[name].expand(t).reshape(self.shapes[name]) if name in sketches else t
            for name, t in tensors.items()
        }

    def _loss(self, sketches: Mapping[str, Sketch]) -> SketchedLoss:
        return SketchedLoss(self, sketches)

    def _sketch_size(self, d: int, rng: Rng) -> int:
        """s = ratio·d_in, or drawn uniformly from [ratio·d_in, (ratio + vary)·d_in] each round."""
        low = max(1, round(self.options.ratio * d))
        high = max(low, min(d, round((self.options.ratio + self.options.vary) * d)))
        return low + rng.integer(32) % (high - low + 1)


class SketchedLoss:
    """L(W̃): the plain loss at the weights W̃ Sᵀ."""

    def __init__(self, defense: DBCL, sketches: Mapping[str, Sketch]) -> None:
        self._defense, self._sketches = defense, sketches

    def __call__(self, params: Tensors, x: Tensor, y: Tensor) -> Tensor:
        return self._defense.task.loss(self._defense.expand(params, self._sketches), x, y)


def _metric(sketches: Mapping[str, Sketch]) -> dict[str, Tensor]:
    """D = diag(Sᵀ S): a step W ← W − u Sᵀ moves W̃ = W S by u Sᵀ S."""
    return {name: sketch.counts() for name, sketch in sketches.items()}
