"""What a party of PBPFL makes of one round: γ, Eq. 19, one of the three uploads."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fedarena.contracts.defense import Broadcast
from fedarena.contracts.estimand import Estimand, TrueGradient
from fedarena.contracts.observation import Observation, Simulator
from fedarena.contracts.simulators import images_behind
from fedarena.contracts.transcript import Seen
from fedarena.core.tensors import Tensors, row
from fedarena.core.threat import Threat
from fedarena.defenses.pbpfl.gamma import (
    Masked,
    columns_leave_open,
    gamma_from_columns,
    gamma_from_labels,
    gammas_from_two,
)
from fedarena.defenses.pbpfl.gamma_steady import gamma_from_law, gammas_from_balance
from fedarena.defenses.pbpfl.masks import offset, steady
from fedarena.defenses.pbpfl.wire import GAMMA, GRADIENT, R_A, SIGMA
from fedarena.models.scaling.positive_scaling import scales

if TYPE_CHECKING:
    from fedarena.defenses.pbpfl.protocol import PBPFL

NEAREST = 100
"""Broadcasts that are chained: over more of them the model's own drift exceeds what their bounds add."""


def opened(defense: PBPFL, now: Seen) -> Masked:
    """A round's broadcast, as precise as it was sent."""
    return Masked(*defense.open(now.down), defense.additive)


def estimate_gamma(defense: PBPFL, seen: Mapping[int, Seen], t: int) -> float:
    """γ̂ of round t by the broadcast after it or before it; where these do not tell, by labels, if it has any and
    columns do not belie them.

    Under steady masks two broadcasts tell most if a gradient's step is between them; of one output else all together.
    """
    now = opened(defense, seen[t])
    if steady(defense.options):
        if defense.task.schedule.server_optimizer == "sgd" and not defense.why_not_mean():
            for first in (t, t - 1):
                if first in seen and first + 1 in seen:
                    sent, after = opened(defense, seen[first]), opened(defense, seen[first + 1])
                    if (both := gammas_from_balance(sent, after, defense.plan)) is not None:
                        return both[t - first]
        if len(now.r_a) == 1:
            return _of_one_output(defense, seen, t)
    for other in (t + 1, t - 1):
        if other in seen:
            found = gammas_from_two(now, opened(defense, seen[other]), defense.plan)
            if found is not None:
                return found[0]
    own = seen[t].own_data
    if own is not None:
        by_labels = gamma_from_labels(now, defense.wide, defense.task.criterion, *own.images())
        if columns_leave_open(now, by_labels):
            return by_labels
    return gamma_from_columns(now)


def _of_one_output(defense: PBPFL, seen: Mapping[int, Seen], t: int) -> float:
    """γ̂ of round t of a network with one output whose hidden masks are the same in all rounds, of all broadcasts."""
    near = sorted(sorted(seen, key=lambda s: abs(s - t))[:NEAREST])
    own = seen[t].own_data

    def labels(sent: Masked) -> float:
        assert own is not None
        return gamma_from_labels(sent, defense.wide, defense.task.criterion, *own.images())

    sents = [opened(defense, seen[s]) for s in near]
    law = partial(offset, defense.options)
    return gamma_from_law(sents, near.index(t), law, labels if own is not None else None)


def coefficients(defense: PBPFL, threat: Threat, seen: Mapping[int, Seen], now: Seen) -> tuple[float, float]:
    """γ and υ: the server's own, or estimates."""
    if threat.party == "server":
        assert now.secret is not None
        gamma = float(now.secret[GAMMA])
    else:
        gamma = estimate_gamma(defense, seen, now.index)
    return gamma, gamma**2 * float(now.down[R_A].double().square().sum())


def part(up: Tensors, kind: str) -> Tensors:
    """One of the three uploads, by the plain model's names."""
    return {name.removeprefix(kind): t for name, t in up.items() if name.startswith(kind)}


def exact(defense: PBPFL, now: Seen, up: Tensors) -> Tensors:
    """Eq. 19 of one upload, by the server."""
    assert now.secret is not None
    stacked = {name: t[None] for name, t in up.items()}
    return row(defense.recover(Broadcast(now.down, now.secret), stacked)[0], 0)


def canonical_gradient(defense: PBPFL, now: Seen, gradient: Tensors) -> Tensors:
    """∂L/∂C at the canonical form C of the model, by whoever reads Ŵ.

    From Ŵ the canonical form is read, and with it the lengths s for which R ∘ W = S ∘ C (S_ij = s_i/s_j), so that

        ∂L/∂C = S ∘ ∂L/∂(R ∘ W) = S ∘ (∂L̂/∂Ŵ − γ σ + υ β)

    This is all of ∇F(W) that can be known without R, and all that matters of it: C is the same network as W. γ̂ does not
    come into S, for γ r_a is added to the output layer, whose rows have no factor.

    Args:
        gradient: ∂L̂/∂Ŵ − γ σ + υ β.
    """
    masked = {name: p.double() for name, p in opened(defense, now).params.items()}
    lengths = defense.plan.factors(scales(defense.plan, masked))
    return {name: g * lengths[name].to(g) for name, g in gradient.items()}


def observation(
    defense: PBPFL,
    now: Seen,
    clients: tuple[int, ...],
    target: Tensors,
    simulate: Simulator,
    bias: str | None,
    estimate: Tensors | None,
    of: Estimand = TrueGradient(),  # noqa: B008  (a value)
) -> Observation:
    """Of the samples behind these clients' uploads of a round; the rest as in `Observation`.

    Targets and estimates are rounded to the precision of the model: messages may have a higher one.
    """
    images = sum(images_behind(defense.task, c) for c in clients)
    seen, found = (None if t is None else rounded(defense, now, t) for t in (target, estimate))
    assert seen is not None
    return Observation(now.index, clients, images, seen, simulate, bias, found, of)


def rounded(defense: PBPFL, now: Seen, tensors: Tensors) -> Tensors:
    """In the precision of the model, which is the broadcast's where that has no higher one."""
    dtype = torch.float32 if defense.options.precision == "float64" else now.down[R_A].dtype
    return {name: t.to(dtype) for name, t in tensors.items()}


def residual_of_one(defense: PBPFL, now: Seen, up: Tensors) -> Tensor:
    """y − ȳ [outputs] of the one sample behind an upload, which is what the gradient of an output bias would be.

    σ of the output layer is α r_a hᵀ with h the masked features and α their sum, so that r_aᵀσ/‖r_a‖² = α h and its sum
    is α². The server knows γ, and with it (y − ȳ) hᵀ.
    """
    name, r_a = defense.additive[0], now.down[R_A]
    assert now.secret is not None
    scaled = r_a @ up[SIGMA + name] / r_a.square().sum()
    h = scaled / scaled.sum().sqrt()
    gradient = up[GRADIENT + name] - float(now.secret[GAMMA]) * up[SIGMA + name]
    return gradient @ h / h.square().sum()
