"""PBPFL's messages, what a client computes from the broadcast, and what the server computes from uploads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from fedarena.contracts.defense import Broadcast
from fedarena.core.errors import UserError
from fedarena.core.tensors import Tensors, row
from fedarena.defenses.pbpfl.card import Options
from fedarena.defenses.pbpfl.widened import Widened
from fedarena.models.scaling.positive_scaling import ScalingPlan, plan
from fedarena.problem.task import Task

R_A = "r_a"
"""The vector [outputs] of a broadcast, beside the parameters Ŵ."""

GAMMA, MASK = "gamma", "mask."
"""The server's secrets: γ, and r of group g as f"{MASK}{g}"."""

GRADIENT, SIGMA, BETA = UPLOADS = ("gradient.", "sigma.", "beta.")
"""Prefixes of a client's three uploads ∂L̂/∂Ŵ, σ and β, by parameter."""

MODEL = torch.finfo(torch.float32)
"""The model's format with precision=float64, where the clients' is finer."""


@dataclass(frozen=True)
class Masked:
    """One broadcast.

    Attributes:
        params: Ŵ.
        r_a: [outputs].
        output: names of the output layer's parameters to which γ r_a was added: its weight, and its bias if it has one.
    """

    params: Tensors
    r_a: Tensor
    output: tuple[str, ...]

    def columns(self) -> Tensor:
        """The output layer, its bias as a further column: [outputs, features (+ 1)], in double precision."""
        weight, *bias = (self.params[name].double() for name in self.output)
        return torch.cat([weight, *(b[:, None] for b in bias)], 1)

    def without(self, gamma: float) -> Tensors:
        """R ∘ W: Ŵ minus γ r_a on every column."""
        params, mask = dict(self.params), (gamma * self.r_a.double()).to(self.r_a)
        for name in self.output:
            params[name] = params[name] - (mask if params[name].dim() == 1 else mask[:, None])
        return params

    def projected(self) -> Tensors:
        """Ŵ with an output layer orthogonal to r_a: (I − r_a r_aᵀ/‖r_a‖²) Ŵ, which does not depend on γ."""
        params, unit = dict(self.params), self.r_a.double() / self.r_a.double().norm()
        for name in self.output:
            layer = params[name].double()
            along = unit @ layer  # a number for each column; one for a bias
            params[name] = (layer - (unit * along if layer.dim() == 1 else torch.outer(unit, along))).to(params[name])
        return params


@dataclass(frozen=True)
class PBPFLWire:
    """The public facts by which broadcasts and uploads are read.

    Attributes:
        options: the protocol's.
        plan: which units of the network may be scaled, which gives R its shape.
        wide: the network with α = Σ_j h_j as one output more.
    """

    options: Options
    plan: ScalingPlan
    wide: Widened

    @classmethod
    def of(cls, options: Options, task: Task) -> Self:
        """The wire of a model. Raises UserError for a model that cannot be masked."""
        try:
            layers = plan(task.model, task.input_shape)
        except UserError as error:
            raise UserError(f"defense pbpfl: option 'model': {error}") from error
        output = layers.layers[-1]
        if output.negated:
            raise UserError(
                f"defense pbpfl: layer '{output.name}' reads units with their signs changed, allowed: as they come "
                "from layers and activations: in their sum α such units cancel, and with it the mask γ α r_a"
            )
        return cls(options, layers, Widened(task.model, output.name))

    @property
    def output(self) -> str:
        """The name of the output layer."""
        return self.plan.layers[-1].name

    @property
    def additive(self) -> tuple[str, ...]:
        """The parameters to which γ r_a is added: the last layer's weight, and its bias as a column of it."""
        bias = self.plan.layers[-1].bias
        return (f"{self.output}.weight", f"{self.output}.bias") if bias else (f"{self.output}.weight",)

    # -- down --------------------------------------------------------------------------------------

    def open(self, down: Tensors) -> Masked:
        """Ŵ and r_a of a broadcast, as precise as they were sent."""
        return Masked({name: t for name, t in down.items() if name != R_A}, down[R_A], self.additive)

    def open_precisely(self, down: Tensors) -> tuple[Tensors, Tensor]:
        """Ŵ and r_a, all of it in the precision in which a client calculates."""
        sent = self.open(down)
        return {name: p.to(sent.r_a) for name, p in sent.params.items()}, sent.r_a

    def factors(self, secret: Mapping[str, Tensor]) -> Tensors:
        """R of every parameter, in double precision."""
        return self.plan.factors([secret[f"{MASK}{g}"] for g in range(len(self.plan.sizes))])

    def masked(self, params: Tensors, secret: Mapping[str, Tensor]) -> Tensors:
        """R ∘ W, rounded once."""
        r = self.factors(secret)
        return {name: (p * r[name].to(p.device)).to(p.dtype) for name, p in params.items()}

    def rounded(self, down: Tensors, tensors: Tensors) -> Tensors:
        """Tensors in the precision of the model, which is the broadcast's unless messages have a higher one."""
        dtype = torch.float32 if self.options.precision == "float64" else down[R_A].dtype
        return {name: t.to(dtype) for name, t in tensors.items()}

    def hidden(self, tensors: Tensors) -> Tensors:
        """Parameters without the output layer."""
        return {name: t for name, t in tensors.items() if name not in self.additive}

    # -- up ----------------------------------------------------------------------------------------

    def recover(self, sent: Broadcast, ups: Tensors, rounding: float = 0.0) -> tuple[Tensors, Tensor]:
        """R ∘ (∂L̂/∂Ŵ − γ σ + υ β) of every upload (Eq. 19), stacked, and the digits that it lost [uploads].

        Cancellation loses log10 of (‖R ∘ ∂L̂/∂Ŵ‖ + ‖γ R ∘ σ‖ + ‖υ R ∘ β‖) / ‖R ∘ (∂L̂/∂Ŵ − γ σ + υ β)‖ digits: the
        factor by which the terms' rounding error exceeds that of their sum. The layer that loses most digits counts.

        The error of a secure sum, `rounding`, counts if it exceeds ε/2. With precision=float64, errors count if they
        exceed one rounding of the model, which is float32. The type of the received upload decides, because a secure
        sum may have rounded it.

        Args:
            sent: the broadcast with the server's secrets.
            ups: uploads [uploads, ...].
            rounding: standard deviation of the error of each entry of `ups`.
        """
        gamma = float(sent.secret[GAMMA])
        v = gamma**2 * float(sent.down[R_A].double().square().sum())
        noise = rounding * math.sqrt(1 + gamma**2 + v**2)
        r, gradients, lost = self.factors(sent.secret), {}, []
        for name in (n for n in sent.down if n != R_A):
            g, sigma, beta = (ups[kind + name] for kind in UPLOADS)
            gradient = torch.add(g, sigma, alpha=-gamma).add_(beta, alpha=v)
            factor = r[name].to(gradient.device)
            # In double precision: where r is wide, squares of these gradients overflow in float32.
            of_sum, *sizes = (
                (t * factor).flatten(1).norm(dim=1, dtype=torch.float64) for t in (gradient, g, sigma, beta)
            )
            terms = sizes[0] + abs(gamma) * sizes[1] + v * sizes[2]
            eps = torch.finfo(gradient.dtype).eps
            model = MODEL.eps if self.options.precision == "float64" else eps  # twice a rounding of the model's
            error = terms * (eps / model) + 2 * noise * float(factor.norm()) / model
            nothing = (error <= of_sum) & of_sum.isfinite()
            lost.append(torch.log10(error / of_sum).where(~nothing, 0.0).nan_to_num(math.inf, math.inf))
            gradients[name] = gradient.mul_(factor.to(gradient))
        return gradients, torch.stack(lost).amax(0)

    def recover_one(self, sent: Broadcast, up: Tensors) -> Tensors:
        """Eq. 19 of one upload."""
        return row(self.recover(sent, {name: t[None] for name, t in up.items()})[0], 0)


def one_upload(parts: Sequence[Tensors]) -> Tensors:
    """∂L̂/∂Ŵ, σ and β as one upload."""
    return {kind + name: t for kind, part in zip(UPLOADS, parts, strict=True) for name, t in part.items()}


def part_of(up: Tensors, kind: str) -> Tensors:
    """One of the three uploads, by the plain model's names; `kind` is one of `UPLOADS`."""
    return {name.removeprefix(kind): t for name, t in up.items() if name.startswith(kind)}
