"""PBPFL, Practical and Bilateral Privacy-preserving Federated Learning (Feng et al. 2020), Section 3.

    server            r^(l) > 0 for every hidden layer, r_a, γ: fresh each round
                      Ŵ^(l) = R^(l) ∘ W^(l),  R_ij = r_i^(l) / r_j^(l−1)                        (Eqs. 6, 7, 13)
                      Ŵ^(L) = R^(L) ∘ W^(L) + γ r_a 1ᵀ,  R_ij = 1 / r_j^(L−1)                   (Eqs. 6, 8, 14, 15)
    server → client   Ŵ, r_a
    client            ŷ = y + γ α r_a with α = Σ_j ŷ_j^(L−1), so that it sees neither W nor y   (Eqs. 11, 17)
    client → server   the gradients by Ŵ of three scalars, from one forward pass
                          L̂ = mean ½‖ŷ − ȳ‖²      Φ = mean α r_aᵀ(ŷ − ȳ) → σ      Ψ = mean ½ α² → β
    server            ∇F(W) = R ∘ (∂L̂/∂Ŵ − γ σ + υ β),  υ = γ²‖r_a‖²                            (Eq. 19)
                      W ← W − η Σ_k (N_k/N) ∇F_k(W)
    in the end        clients get R ∘ W without γ r_a, which predicts as W does                 (Section 3.3)

This holds because ½‖y − ȳ‖² = ½‖ŷ − ȳ − γ α r_a‖² = L̂ − γ Φ + υ Ψ: the loss is a quadratic in γ, and its three
coefficients are functions of Ŵ that a client can differentiate. It needs the square; no other loss will do.

The network is run with one output more, whose weights are all 1: it gives α. R follows from the network's graph
(`fedarena.models.scaling.positive_scaling`), and a bias is a weight from a unit that outputs 1, in the last layer too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor
from torch.func import vjp

from fedarena.contracts.aggregator import Aggregator
from fedarena.contracts.defense import Broadcast, Cohort, Defense, Direction, State
from fedarena.contracts.hidden_scale import HiddenScale
from fedarena.contracts.observation import Disclosure, Reading
from fedarena.contracts.transcript import Seen
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.pbpfl.card import Options
from fedarena.defenses.pbpfl.masks import channel_masks, coefficient, direction
from fedarena.defenses.pbpfl.readings import disclosures, readings
from fedarena.defenses.pbpfl.three_gradients import three_gradients
from fedarena.defenses.pbpfl.wire import GAMMA, GRADIENT, MASK, R_A, UPLOADS, PBPFLWire, one_upload
from fedarena.problem.task import Batch, Task

if TYPE_CHECKING:
    from fedarena.contracts.secure_sum import SecureSum

LOST = "digits lost"
"""The name in verdicts of the decimal digits that each recovered gradient lost to rounding."""


class PBPFL(Defense, HiddenScale):
    """The protocol; see the module's docstring."""

    options: Options
    no_momentum = "the masks change in each round, so that uploads of two rounds cannot be added up"
    sums = True

    def __init__(self, options: Options, task: Task, rule: Aggregator | None = None) -> None:
        super().__init__(options, task, rule)
        if task.schedule.loss == "cross-entropy":
            raise UserError(
                "defense pbpfl: option 'loss' is cross-entropy, allowed: mse, regression: only of a squared error can "
                "gradients be recovered"
            )
        if not task.schedule.fedsgd:
            raise UserError(
                f"defense pbpfl: option 'local-epochs' is {task.schedule.local_epochs}, allowed: 0: clients do not "
                "learn the gradient, so they cannot step along it"
            )
        self.wire = PBPFLWire.of(options, task)

    def secured(self, secure: SecureSum | None) -> Self:
        if secure is not None and secure.repeat > 1 and secure.repeat % len(UPLOADS):
            raise UserError(
                f"defense pbpfl: option 'repeat' of its secure sum is {secure.repeat}, allowed: 1, or {len(UPLOADS)} "
                "and multiples of it: its three uploads share a mask, or each entry has its own"
            )
        return super().secured(secure)

    # -- the server --------------------------------------------------------------------------------

    def broadcast(self, state: State, rng: Rng) -> Broadcast:
        """Ŵ = R ∘ W, plus γ r_a on every column of the last layer; r_a."""
        like = state.params[f"{self.wire.output}.weight"]
        r_a = direction(self.options, like.shape[0], rng).to(like)
        if self.options.precision == "float64":
            r_a = r_a.double()  # also the layer to which γ r_a is added; float32 would lose the model's digits there
        gamma = coefficient(self.options, r_a.double().cpu(), rng).to(r_a)
        return self._masked(state, r_a, gamma, self._masks(rng, like.device))

    def _masked(self, state: State, r_a: Tensor, gamma: Tensor, masks: Tensors) -> Broadcast:
        """The broadcast under these masks."""
        down = self.wire.masked(state.params, masks)
        for name in self.wire.additive:
            down[name] = down[name] + gamma * (r_a if down[name].dim() == 1 else r_a[:, None])
        return Broadcast({**down, R_A: r_a}, {GAMMA: gamma, **masks})

    def direction(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        """The combined gradients R ∘ (∂L̂/∂Ŵ − γ σ + υ β) (Eq. 19)."""
        like = ups[UPLOADS[0] + self.wire.additive[0]]
        rounding = 0.0 if self.secure is None else self.secure.rounding(len(cohort.clients), like.dtype)
        precise, lost = self.wire.recover(sent, ups, rounding)
        gradients = {name: g.to(state.params[name]) for name, g in precise.items()}
        combined = self.combine(state, sent, gradients, cohort, rng)
        return replace(combined, verdict={**combined.verdict, LOST: lost})

    def release(self, state: State, rng: Rng) -> Tensors:
        """R ∘ W (Section 3.3)."""
        return self.wire.masked(state.params, self._masks(rng))

    def _masks(self, rng: Rng, device: torch.device | None = None) -> Tensors:
        """r of every group of channels, freshly drawn."""
        drawn = channel_masks(self.options, self.wire.plan.sizes, rng)
        return {f"{MASK}{g}": r if device is None else r.to(device) for g, r in enumerate(drawn)}

    def _reference(self, state: State, sent: Broadcast) -> Tensor:
        assert state.auxiliary is not None
        up = self.expected_upload(sent.down, *state.auxiliary.images())
        gradient = self.wire.recover_one(sent, up)
        return flatten({name: g.to(state.params[name]) for name, g in gradient.items()})

    # -- a server that chooses its masks -----------------------------------------------------------

    def scaled(self, state: State, loudness: float, rng: Rng) -> Broadcast:
        """r = 1/loudness for the first layer's channels and 1 for the others, and γ = 0."""
        honest = self.broadcast(state, rng)
        first = {f"{MASK}{run.group}" for run in self.wire.plan.layers[0].rows}
        drawn = {name: r for name, r in honest.secret.items() if name != GAMMA}
        masks = {name: torch.full_like(r, 1 / loudness if name in first else 1.0) for name, r in drawn.items()}
        return self._masked(state, honest.down[R_A], torch.zeros_like(honest.secret[GAMMA]), masks)

    @property
    def unscaled(self) -> tuple[str, ...]:
        """All but ∂L̂/∂Ŵ of the first layer; its σ and β do not shrink with it if it is the only hidden one."""
        layer = self.wire.plan.layers[0].name
        names = [name for name, _ in self.task.model.named_parameters()]
        others = [name for name in names if name.rpartition(".")[0] != layer]
        return (*others, *(kind + n for kind in UPLOADS for n in (others if kind == GRADIENT else names)))

    # -- a client ----------------------------------------------------------------------------------

    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        """The gradients by Ŵ of L̂, Φ and Ψ, from one forward pass."""
        params, r_a = self.wire.open_precisely(down)
        x, y, criterion = batch.x[0].to(r_a), batch.y[0], self.task.criterion

        def scalars(params: Tensors) -> tuple[Tensor, Tensor, Tensor]:
            predicted, alpha = self.wire.wide(params, x)
            error = predicted - criterion.target(y, predicted)
            return 0.5 * error.square().sum(1).mean(), (alpha * (error @ r_a)).mean(), 0.5 * alpha.square().mean()

        values, back, *_ = vjp(scalars, params)
        one, none = torch.ones_like(values[0]), torch.zeros_like(values[0])
        gradients = [back(seed)[0] for seed in ((one, none, none), (none, one, none), (none, none, one))]
        return one_upload(gradients), memory

    def clients(
        self, down: Tensors, batches: Sequence[Batch], memories: Sequence[Tensors], noises: Sequence[Tensors]
    ) -> tuple[Tensors, list[Tensors]]:
        params, r_a = self.wire.open_precisely(down)
        precise = [replace(batch, x=batch.x.to(r_a)) for batch in batches]
        return one_upload(three_gradients(self.task, self.wire.wide, params, r_a, precise)), list(memories)

    # -- what parties observe, and what is said of a run -------------------------------------------

    def readings(
        self, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
    ) -> Sequence[Reading] | NotApplicable:
        return readings(self, self.wire, threat, seen, victims)

    def disclosures(
        self, threat: Threat, seen: Mapping[int, Seen], rounds: Sequence[int]
    ) -> Sequence[Disclosure] | NotApplicable:
        return disclosures(self, self.wire, threat, seen, rounds)

    def warnings(self, verdicts: Sequence[Tensors]) -> tuple[str, ...]:
        """A warning where recovered gradients lost more digits than the option `digits` allows."""
        worst = [float(v[LOST].max()) for v in verdicts]
        bad = [t for t, lost in enumerate(worst) if not lost <= self.options.digits]
        if not bad:
            return ()
        most = f"up to {max(worst):.1f}" if math.isfinite(max(worst)) else "all"
        return (
            f"recovered gradients lost {most} of their decimal digits to rounding, more than "
            f"{self.options.digits:g} in {len(bad)} of {len(worst)} rounds (first: {bad[0]}); float32 has 7.2",
        )
