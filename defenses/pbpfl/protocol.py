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

For ½‖y − ȳ‖² = ½‖ŷ − ȳ − γ α r_a‖² = L̂ − γ Φ + υ Ψ: the loss is a quadratic in γ, and its three coefficients are
functions of Ŵ that a client can differentiate. The square is what makes this work: no other loss will do.

The network is run with one output more, whose weights are all 1: it gives α. R is found from the network's graph
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
from fedarena.contracts.observation import Disclosure, Reading
from fedarena.contracts.transcript import Seen
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.pbpfl import readings as pbpfl_views
from fedarena.defenses.pbpfl.card import Options
from fedarena.defenses.pbpfl.masks import channel_masks, coefficient, direction
from fedarena.defenses.pbpfl.three_gradients import three_gradients
from fedarena.defenses.pbpfl.widened import Widened
from fedarena.defenses.pbpfl.wire import GAMMA, MASK, R_A, UPLOADS
from fedarena.models.scaling.positive_scaling import plan
from fedarena.problem.batch import Batch
from fedarena.problem.task import Task

if TYPE_CHECKING:
    from fedarena.contracts.secure_sum import SecureSum

LOST = "digits lost"
MODEL = torch.finfo(torch.float32)
"""With precision=float64, where clients are finer than the model."""


class PBPFL(Defense):
    """The protocol; see the module's docstring."""

    options: Options
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
        try:
            self.plan = plan(task.model, task.input_shape)
        except UserError as error:
            raise UserError(f"defense pbpfl: option 'model': {error}") from error
        self.output = self.plan.layers[-1].name
        if self.plan.layers[-1].negated:
            raise UserError(
                f"defense pbpfl: layer '{self.output}' reads units with their signs changed, allowed: as they come "
                "from layers and activations: in their sum α such units cancel, and with it the mask γ α r_a"
            )
        self.wide = Widened(task.model, self.output)

    def secured(self, secure: SecureSum | None) -> Self:
        if secure is not None and secure.repeat > 1 and secure.repeat % len(UPLOADS):
            raise UserError(
                f"defense pbpfl: option 'repeat' of its secure sum is {secure.repeat}, allowed: 1, or {len(UPLOADS)} "
                "and multiples of it: its three uploads share a mask, or each entry has its own"
            )
        return super().secured(secure)

    # -- the protocol ------------------------------------------------------------------------------

    def broadcast(self, state: State, rng: Rng) -> Broadcast:
        like = state.params[f"{self.output}.weight"]
        r_a = direction(self.options, like.shape[0], rng).to(like)
        if self.options.precision == "float64":
            r_a = r_a.double()  # and with it the layer that γ r_a is added to, where the model would drown
        gamma = coefficient(self.options, r_a.double().cpu(), rng).to(r_a)
        masks = [r.to(like.device) for r in channel_masks(self.options, self.plan.sizes, rng)]
        secret = {GAMMA: gamma} | {f"{MASK}{g}": r for g, r in enumerate(masks)}
        down = self.masked(state.params, secret)
        for name in self.additive:
            down[name] = down[name] + gamma * (r_a if down[name].dim() == 1 else r_a[:, None])
        return Broadcast({**down, R_A: r_a}, secret)

    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        params, r_a = self.inside(down)
        x, y, criterion = batch.x[0].to(r_a), batch.y[0], self.task.criterion

        def scalars(params: Tensors) -> tuple[Tensor, Tensor, Tensor]:
            predicted, alpha = self.wide(params, x)
            error = predicted - criterion.target(y, predicted)
            return 0.5 * error.square().sum(1).mean(), (alpha * (error @ r_a)).mean(), 0.5 * alpha.square().mean()

        values, back, *_ = vjp(scalars, params)
        one, none = torch.ones_like(values[0]), torch.zeros_like(values[0])
        found = [back(seed)[0] for seed in ((one, none, none), (none, one, none), (none, none, one))]
        return named(found), memory

    def clients(
        self, down: Tensors, batches: Sequence[Batch], memories: Sequence[Tensors], noises: Sequence[Tensors]
    ) -> tuple[Tensors, list[Tensors]]:
        params, r_a = self.inside(down)
        precise = [replace(batch, x=batch.x.to(r_a)) for batch in batches]
        return named(three_gradients(self.task, self.wide, params, r_a, precise)), list(memories)

    def direction(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        like = ups[UPLOADS[0] + self.additive[0]]
        rounding = 0.0 if self.secure is None else self.secure.rounding(len(cohort.clients), like.dtype)
        precise, lost = self.recover(sent, ups, rounding)
        gradients = {name: g.to(state.params[name]) for name, g in precise.items()}
        found = self.combine(state, sent, gradients, cohort, rng)
        return replace(found, verdict={**found.verdict, LOST: lost})

    def warnings(self, verdicts: Sequence[Tensors]) -> tuple[str, ...]:
        worst = [float(v[LOST].max()) for v in verdicts]
        bad = [t for t, lost in enumerate(worst) if not lost <= self.options.digits]
        if not bad:
            return ()
        most = f"up to {max(worst):.1f}" if math.isfinite(max(worst)) else "all"
        return (
            f"recovered gradients lost {most} of their decimal digits to rounding, more than "
            f"{self.options.digits:g} in {len(bad)} of {len(worst)} rounds (first: {bad[0]}); float32 has 7.2",
        )

    def release(self, state: State, rng: Rng) -> Tensors:
        masks = channel_masks(self.options, self.plan.sizes, rng)
        return self.masked(state.params, {f"{MASK}{g}": r for g, r in enumerate(masks)})

    def readings(
        self, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
    ) -> Sequence[Reading] | NotApplicable:
        return pbpfl_views.readings(self, threat, seen, victims)

    def disclosures(
        self, threat: Threat, seen: Mapping[int, Seen], rounds: Sequence[int]
    ) -> Sequence[Disclosure] | NotApplicable:
        return pbpfl_views.disclosures(self, threat, seen, rounds)

    # -- its pieces --------------------------------------------------------------------------------

    @property
    def additive(self) -> tuple[str, ...]:
        """The parameters to which γ r_a is added: the last layer's weight, and its bias as a column of it."""
        bias = self.plan.layers[-1].bias
        return (f"{self.output}.weight", f"{self.output}.bias") if bias else (f"{self.output}.weight",)

    def open(self, down: Tensors) -> tuple[Tensors, Tensor]:
        """What a client makes of the broadcast: Ŵ and r_a."""
        return {name: t for name, t in down.items() if name != R_A}, down[R_A]

    def inside(self, down: Tensors) -> tuple[Tensors, Tensor]:
        """The same, all of it in the precision in which a client calculates."""
        params, r_a = self.open(down)
        return {name: p.to(r_a) for name, p in params.items()}, r_a

    def factors(self, secret: Mapping[str, Tensor]) -> Tensors:
        """R of every parameter, in double precision."""
        return self.plan.factors([secret[f"{MASK}{g}"] for g in range(len(self.plan.sizes))])

    def masked(self, params: Tensors, secret: Mapping[str, Tensor]) -> Tensors:
        """R ∘ W, rounded once."""
        r = self.factors(secret)
        return {name: (p * r[name].to(p.device)).to(p.dtype) for name, p in params.items()}

    def recover(self, sent: Broadcast, ups: Tensors, rounding: float = 0.0) -> tuple[Tensors, Tensor]:
        """R ∘ (∂L̂/∂Ŵ − γ σ + υ β) of every upload (Eq. 19), stacked, and the digits that it lost [uploads].

        Lost to cancellation are log10 of (‖R ∘ ∂L̂/∂Ŵ‖ + ‖γ R ∘ σ‖ + ‖υ R ∘ β‖) / ‖R ∘ (∂L̂/∂Ŵ − γ σ + υ β)‖, in the
        layer where it is largest: by so much is the rounding error of the terms larger than that of their sum. Where a
        secure sum has rounded each entry by `rounding`, it counts by as much as it exceeds ε/2. With
        precision=float64 all that counts by as much as it exceeds a rounding of the model's, which is float32; by what
        type arrives, should something on the way have rounded it.

        Args:
            rounding: standard deviation of the error of each entry of `ups`.
        """
        gamma = float(sent.secret[GAMMA])
        v = gamma**2 * float(sent.down[R_A].double().square().sum())
        noise = rounding * math.sqrt(1 + gamma**2 + v**2)
        r, gradients, lost = self.factors(sent.secret), {}, []
        for name in (n for n in sent.down if n != R_A):
            g, sigma, beta = (ups[kind + name] for kind in UPLOADS)
            found = torch.add(g, sigma, alpha=-gamma).add_(beta, alpha=v)
            factor = r[name].to(found.device)
            # In double precision: where r is wide, squares of these gradients overflow in float32.
            own, *sizes = ((t * factor).flatten(1).norm(dim=1, dtype=torch.float64) for t in (found, g, sigma, beta))
            terms = sizes[0] + abs(gamma) * sizes[1] + v * sizes[2]
            eps = torch.finfo(found.dtype).eps
            model = MODEL.eps if self.options.precision == "float64" else eps  # twice a rounding of the model's
            error = terms * (eps / model) + 2 * noise * float(factor.norm()) / model
            nothing = (error <= own) & own.isfinite()
            lost.append(torch.log10(error / own).where(~nothing, 0.0).nan_to_num(math.inf, math.inf))
            gradients[name] = found.mul_(factor.to(found))
        return gradients, torch.stack(lost).amax(0)

    def _reference(self, state: State, sent: Broadcast) -> Tensor:
        assert state.auxiliary is not None
        own = self.expected_upload(sent.down, *state.auxiliary.images())
        found = self.recover(sent, {n: t[None] for n, t in own.items()})[0]
        return flatten({name: t[0].to(state.params[name]) for name, t in found.items()})


def named(parts: Sequence[Tensors]) -> Tensors:
    """∂L̂/∂Ŵ, σ and β as one upload."""
    return {kind + name: t for kind, part in zip(UPLOADS, parts, strict=True) for name, t in part.items()}
