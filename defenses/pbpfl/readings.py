"""What each party makes of what it sees of PBPFL.

The paper's attackers read noise as if it were the model:

    server         `gradient`     the exact gradient, by Eq. 19; matched with the plain model at W
    eavesdropper   `upload`       ∂L̂/∂Ŵ; matched with the plain model at Ŵ
    client         `difference`   (Ŵ_t − Ŵ_{t+1})/η less its own ∂L̂/∂Ŵ; matched with the plain model at Ŵ_t

The adaptive ones know that the masked model is a network like any other, and that the multiplicative mask is the
positive scaling of ReLU units, which no function depends on:

    server, eavesdropper   `upload`      Eq. 19 with γ or γ̂, σ and β; matched through the client step at Ŵ
    client                 `first layer`, `every layer`   the others' update in canonical form

Where uploads are summed securely, single messages show more: `fedarena.defenses.pbpfl.message_readings`. How
the client does it: `fedarena.defenses.pbpfl.client_readings`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fedarena.contracts.estimand import TrueGradient
from fedarena.contracts.observable import UNSEEN
from fedarena.contracts.observation import Disclosure, Observation, Reading
from fedarena.contracts.shared_mask import NAME as SHARED_MASK
from fedarena.contracts.simulators import PlainGradient, ThroughProtocol, uploads_seen
from fedarena.contracts.transcript import Seen
from fedarena.core.tensors import Tensors, flatten
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.pbpfl.client_readings import from_broadcasts
from fedarena.defenses.pbpfl.estimands import CanonicalGradient
from fedarena.defenses.pbpfl.message_readings import cancelled, shared_mask, under_its_mask
from fedarena.defenses.pbpfl.round_readings import (
    canonical_gradient,
    coefficients,
    estimate_gamma,
    exact,
    observation,
    opened,
    part,
    residual_of_one,
    rounded,
)
from fedarena.defenses.pbpfl.wire import GAMMA, GRADIENT, UPLOADS

if TYPE_CHECKING:
    from fedarena.defenses.pbpfl.protocol import PBPFL


def readings(
    defense: PBPFL, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
) -> Sequence[Reading] | NotApplicable:
    """See `fedarena.contracts.defense.Defense.readings`."""
    if threat.party == "client":
        return from_broadcasts(defense, threat, seen, victims)
    rounds = [seen[t] for t in victims if t in seen]
    if not rounds:
        return NotApplicable("none of the rounds attacked took place")
    if threat.form == "paper":
        name = "gradient" if threat.party == "server" else "upload"
        return [Reading(name, tuple(_as_gradient(defense, threat, now) for now in rounds))]
    found = [Reading("upload", tuple(_through_the_step(defense, threat, seen, now) for now in rounds))]
    if defense.secure is None:
        return found
    if math.isfinite(defense.secure.spread):
        found.append(Reading("under its mask", tuple(under_its_mask(defense, threat, now) for now in rounds)))
    if defense.secure.repeat % len(UPLOADS) == 0:
        found.append(Reading(SHARED_MASK, tuple(shared_mask(defense, threat, seen, now) for now in rounds)))
        if threat.party == "server" and defense.options.gamma == "cancelling":
            found.append(Reading("cancelled", tuple(cancelled(defense, threat, now) for now in rounds)))
    return found


def disclosures(
    defense: PBPFL, threat: Threat, seen: Mapping[int, Seen], rounds: Sequence[int]
) -> Sequence[Disclosure] | NotApplicable:
    """The model in the paper's eyes is Ŵ itself; in the adaptive ones Ŵ less γ̂ r_a, which predicts as W does."""
    if threat.party == "server":
        return NotApplicable("the server holds its own model")
    found = []
    for t in (t for t in rounds if t in seen):
        sent = opened(defense, seen[t])
        if threat.form == "paper":
            found.append(Disclosure(t, rounded(defense, seen[t], sent.params)))
        else:
            gamma = estimate_gamma(defense, seen, t)
            freed = rounded(defense, seen[t], sent.without(gamma))
            found.append(Disclosure(t, freed, {GAMMA: torch.tensor([gamma])}))
    return found or UNSEEN


def _as_gradient(defense: PBPFL, threat: Threat, now: Seen) -> Observation:
    """What the paper's attacker reads as a gradient, matched with the model that it takes for the plain one."""
    clients, up = uploads_seen(now, threat)
    server = threat.party == "server"
    at, target = now.params, exact(defense, now, up) if server else part(up, GRADIENT)
    if not server:
        at = rounded(defense, now, defense.open(now.down)[0])
    assert at is not None
    plain = PlainGradient(defense.task, at, clients)
    return observation(defense, now, clients, target, plain, defense.task.output_bias, target)


def _through_the_step(defense: PBPFL, threat: Threat, seen: Mapping[int, Seen], now: Seen) -> Observation:
    """The upload, unmixed. An eavesdropper has Eq. 19 with γ̂ and without R, which nobody finds but the server; its
    estimate is the gradient at the canonical form, of which R is no part."""
    clients, up = uploads_seen(now, threat)
    bias, server = defense.task.output_bias, threat.party == "server"
    mixed = Unmixed(ThroughProtocol(defense, now.down, clients), *coefficients(defense, threat, seen, now))
    parts = mixed.unmixed(up)
    estimate = exact(defense, now, up) if server else canonical_gradient(defense, now, part(parts, GRADIENT))
    simulate = mixed.with_sizes_of(parts)
    named = GRADIENT + bias if bias else None
    of = TrueGradient() if server else CanonicalGradient(defense.plan)
    found = observation(defense, now, clients, simulate.unmixed(up), simulate, named, estimate, of)
    if not server or bias or found.images > 1:
        return found
    residual = {f"{defense.output}.bias": residual_of_one(defense, now, up)}
    return replace(found, output_gradient=rounded(defense, now, residual))


@dataclass(frozen=True)
class Unmixed:
    """Simulator: an upload with Eq. 19 (but for R) in place of ∂L̂/∂Ŵ, and its three parts brought to length 1.

    As sent, γ α r_a drowns in ∂L̂/∂Ŵ what labels and images change.

    Attributes:
        through: what a candidate batch would have sent. gamma, v: γ and υ, or their estimates.
        sizes: of the three parts of what was seen.
    """

    through: ThroughProtocol
    gamma: float
    v: float
    sizes: tuple[float, ...] = (1.0, 1.0, 1.0)

    def with_sizes_of(self, parts: Tensors) -> Unmixed:
        """The one that brings these parts to length 1."""
        sizes = (float(flatten(part(parts, kind)).norm()) for kind in UPLOADS)
        return replace(self, sizes=tuple(size or 1.0 for size in sizes))

    def unmixed(self, up: Tensors) -> Tensors:
        """Of an upload."""
        g, sigma, beta = (part(up, kind) for kind in UPLOADS)
        combined = {name: t - self.gamma * sigma[name] + self.v * beta[name] for name, t in g.items()}
        parts = zip(UPLOADS, self.sizes, (combined, sigma, beta), strict=True)
        return {kind + name: t / size for kind, size, tensors in parts for name, t in tensors.items()}

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        return self.unmixed(self.through(x, y))
