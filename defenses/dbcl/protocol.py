"""DBCL, Double-Blind Collaborative Learning (Zhang & Wang, "Matrix Sketching for Secure Collaborative
Machine Learning", ICML 2021), Section 4.2 and Appendix B.

    server → client   seed ψ (4 bytes), W̃ = W S of every dense and convolutional layer but the output,
                      biases and output layer in clear; a new S after every communication
    client            Z = (X S) W̃ᵀ + b;  backward Γ = Gᵀ (X S),  ∂L/∂X = (G W̃) Sᵀ
    client → server   Γ = ∂L/∂W̃ (FedSGD), or the sum of its local steps on Γ (FedAvg, S fixed meanwhile;
                      `fedarena.defenses.dbcl.local_training`)
    server            ∂L/∂W = mean(Γ) Sᵀ;  W ← W − η ∂L/∂W          (Eq. 2)
    test time         the plain network with W, no sketch

(X S) W̃ᵀ = X (W̃ Sᵀ)ᵀ, so the client step is written as the plain network run with the rank-s weight
W̃ Sᵀ, for convolutions too, where S is shared by all patches (Appendix B.2). The client holds W̃ and S
and never touches W. Dense networks train in the faster form with X S (see `fedarena.problem.client_steps.stacked`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from fedarena.defenses.dbcl.card import Options
from fedarena.defenses.dbcl.local_training import LocalCoordinates
from fedarena.defenses.dbcl.model_estimate import likeliest
from fedarena.defenses.dbcl.readings import readings
from fedarena.defenses.dbcl.wire import SEED, DBCLWire
from fedarena.problem import client_steps as forms
from fedarena.problem.client_steps import InputMap
from fedarena.problem.local_training import upload
from fedarena.problem.task import Batch, Task


class DBCL(Defense):
    """The protocol; see the module's docstring."""

    options: Options
    no_momentum = "the sketch changes in each round, so that uploads of two rounds cannot be added up"
    sums = True

    def __init__(self, options: Options, task: Task, rule: Aggregator | None = None) -> None:
        super().__init__(options, task, rule)
        self.wire = DBCLWire.of(task, options.hash)
        if not self.wire.shapes:
            raise UserError("defense dbcl: the model has no layer but the output, which is never sketched: give it one")
        if options.hash == "gaussian" and not task.schedule.fedsgd and task.schedule.client_optimizer == "adam":
            raise UserError(
                "defense dbcl: hash=gaussian has no local Adam: it steps entry by entry of W, which leaves the row "
                "space of Sᵀ, and a client knows steps inside it alone; take client_optimizer=sgd or momentum"
            )

    # -- the server --------------------------------------------------------------------------------

    def broadcast(self, state: State, rng: Rng) -> Broadcast:
        """ψ, and W̃ = W S of every hidden layer."""

        def drawn(layer: int, d: int) -> int:
            low, high = self._sketch_sizes(d)
            return low + rng.child("size", layer).integer(32) % (high - low + 1)

        return self._sketched(state.params, drawn, rng)

    def chosen_broadcast(self, state: State, params: Tensors, rng: Rng) -> Broadcast:
        """The same, with the largest sketches that the options allow, which hide least."""
        return self._sketched(params, lambda layer, d: self._sketch_sizes(d)[1], rng)

    def takes(self, down: Tensors, honest: Tensors) -> bool:
        """As inherited, but for the size of sketches: a client reads it off W̃, and the options say what it may be."""
        sketched = self.wire.shapes.keys() & down.keys()

        def without_size(tensors: Tensors) -> Tensors:
            return {name: t[:, 0] if name in sketched and t.dim() == 2 else t for name, t in tensors.items()}

        if not super().takes(without_size(down), without_size(honest)):
            return False
        allowed = {name: self._sketch_sizes(self.wire.shapes[name][1:].numel()) for name in sketched}
        return all(low <= down[name].shape[-1] <= high for name, (low, high) in allowed.items())

    def _sketched(self, params: Tensors, size: Callable[[int, int], int], rng: Rng) -> Broadcast:
        seed = rng.child("seed").integer(31)
        down: Tensors = {SEED: torch.tensor([seed], dtype=torch.int32)}
        for layer, (name, w) in enumerate(params.items()):
            if name in self.wire.shapes:
                flat = w.flatten(1)
                w = self.wire.sketch(seed, layer, name, size(layer, flat.shape[1])).to(w.device).apply(flat)
            down[name] = w
        return Broadcast(down)

    def _sketch_sizes(self, d: int) -> tuple[int, int]:
        """The least and the largest s, ratio·d_in and (ratio + vary)·d_in, between which it is drawn each round."""
        low = max(1, round(self.options.ratio * d))
        return low, max(low, min(d, round((self.options.ratio + self.options.vary) * d)))

    def direction(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        """∂L/∂W = mean(Γ) Sᵀ (Eq. 2)."""
        mean = self.combine(state, sent, ups, cohort, rng)
        return replace(mean, step=self.wire.expand(mean.step, self.wire.open(sent.down)[1]))

    # -- a client ----------------------------------------------------------------------------------

    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        """Γ = ∂L/∂W̃, where the network runs with W̃ Sᵀ."""
        start, sketches = self.wire.open(down)
        if self.task.schedule.fedsgd:
            return upload(self._loss(sketches), start, batch, self.task.schedule), memory
        local = LocalCoordinates(sketches)
        up = upload(self._loss(local.maps), local.start(start), batch, self.task.schedule, local.metric)
        return local.upload(up), memory

    def clients(
        self, down: Tensors, batches: Sequence[Batch], memories: Sequence[Tensors], noises: Sequence[Tensors]
    ) -> tuple[Tensors, list[Tensors]]:
        start, sketches = self.wire.open(down)
        if self.task.schedule.fedsgd:
            return forms.uploads(self.task, self._loss(sketches), start, batches, None, sketches), list(memories)
        local = LocalCoordinates(sketches)
        loss, start = self._loss(local.maps), local.start(start)
        return local.upload(forms.uploads(self.task, loss, start, batches, local.metric, local.maps)), list(memories)

    def _loss(self, maps: Mapping[str, InputMap]) -> SketchedLoss:
        return SketchedLoss(self.task, self.wire, maps)

    # -- what parties observe ----------------------------------------------------------------------

    def readings(
        self, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
    ) -> Sequence[Reading] | NotApplicable:
        return readings(self, self.wire, threat, seen, victims)

    def disclosure(self, threat: Threat, now: Seen) -> Disclosure | NotApplicable:
        """W̃ Sᵀ, the network that every client ran."""
        return super().disclosure(threat, replace(now, down=self.wire.expand(*self.wire.open(now.down))))

    def disclosures(
        self, threat: Threat, seen: Mapping[int, Seen], rounds: Sequence[int]
    ) -> Sequence[Disclosure] | NotApplicable:
        """As inherited; in the adaptive form the likeliest W, given all sketches that were seen until then."""
        if threat.form == "paper" or threat.party == "server":
            return super().disclosures(threat, seen, rounds)
        return likeliest(self, self.wire, threat, seen, rounds)


class SketchedLoss:
    """L(W̃): the plain loss at the weights W̃ Sᵀ, or L(P) at P Tᵀ where local training has another map T."""

    def __init__(self, task: Task, wire: DBCLWire, maps: Mapping[str, InputMap]) -> None:
        self._task, self._wire, self._maps = task, wire, maps

    def __call__(self, params: Tensors, x: Tensor, y: Tensor) -> Tensor:
        return self._task.loss(self._wire.expand(params, self._maps), x, y)
