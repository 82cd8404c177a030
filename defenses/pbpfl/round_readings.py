"""What the parties of PBPFL compute from one round's upload: Eq. 19, its canonical form, and an observation."""

from __future__ import annotations

from torch import Tensor

from fedarena.contracts.defense import Broadcast
from fedarena.contracts.estimand import Estimand, TrueGradient
from fedarena.contracts.observation import Observation, Simulator
from fedarena.contracts.simulators import images_behind
from fedarena.contracts.transcript import Seen
from fedarena.core.tensors import Tensors
from fedarena.defenses.pbpfl.wire import GAMMA, GRADIENT, R_A, SIGMA, PBPFLWire
from fedarena.models.scaling.positive_scaling import scales
from fedarena.problem.task import Task


def exact_gradient(wire: PBPFLWire, now: Seen, up: Tensors) -> Tensors:
    """Eq. 19 of one upload, by the server."""
    assert now.secret is not None
    return wire.recover_one(Broadcast(now.down, now.secret), up)


def canonical_gradient(wire: PBPFLWire, now: Seen, gradient: Tensors) -> Tensors:
    """∂L/∂C at the canonical form C of the model, for a party that reads Ŵ.

    Ŵ gives the canonical form, and the lengths s for which R ∘ W = S ∘ C (S_ij = s_i/s_j), so that

        ∂L/∂C = S ∘ ∂L/∂(R ∘ W) = S ∘ (∂L̂/∂Ŵ − γ σ + υ β)

    More of ∇F(W) cannot be known without R, and more does not matter: C is the same network as W. S does not depend on
    γ̂, because γ r_a is added to the output layer, whose rows have no factor.

    Args:
        gradient: ∂L̂/∂Ŵ − γ σ + υ β.
    """
    masked = {name: p.double() for name, p in wire.open(now.down).params.items()}
    lengths = wire.plan.factors(scales(wire.plan, masked))
    return {name: g * lengths[name].to(g) for name, g in gradient.items()}


def observation(
    task: Task,
    wire: PBPFLWire,
    now: Seen,
    clients: tuple[int, ...],
    *,
    target: Tensors,
    simulate: Simulator,
    output_bias: str | None = None,
    estimate: Tensors | None = None,
    estimate_of: Estimand = TrueGradient(),  # noqa: B008  (a value)
) -> Observation:
    """An observation of the samples behind these clients' uploads of a round; the arguments are as in `Observation`.

    Targets and estimates are rounded to the precision of the model; messages may have a higher one.
    """
    return Observation(
        round=now.index,
        clients=clients,
        images=sum(images_behind(task, c) for c in clients),
        target=wire.rounded(now.down, target),
        simulate=simulate,
        output_bias=output_bias,
        estimate=None if estimate is None else wire.rounded(now.down, estimate),
        estimate_of=estimate_of,
    )


def residual_of_one(wire: PBPFLWire, now: Seen, up: Tensors) -> Tensor:
    """y − ȳ [outputs] of the one sample behind an upload, which would be the gradient of an output bias.

    σ of the output layer is α r_a hᵀ with h the masked features and α their sum, so that r_aᵀσ/‖r_a‖² = α h and its sum
    is α². The server knows γ, and with it (y − ȳ) hᵀ.
    """
    name, r_a = wire.additive[0], now.down[R_A]
    assert now.secret is not None
    scaled = r_a @ up[SIGMA + name] / r_a.square().sum()
    h = scaled / scaled.sum().sqrt()
    gradient = up[GRADIENT + name] - float(now.secret[GAMMA]) * up[SIGMA + name]
    return gradient @ h / h.square().sum()
