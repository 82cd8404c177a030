"""What each party observes of PBPFL.

The paper's attackers take the masked model as the plain one:

    server         `gradient`     the exact gradient, by Eq. 19; matched with the plain model at W
    eavesdropper   `upload`       ∂L̂/∂Ŵ; matched with the plain model at Ŵ
    client         `difference`   (Ŵ_t − Ŵ_{t+1})/η minus its own ∂L̂/∂Ŵ; matched with the plain model at Ŵ_t

The adaptive ones use that the masked model is an ordinary network, and that the multiplicative mask is the positive
scaling of ReLU units, which does not change the function:

    server, eavesdropper   `upload`      Eq. 19 with γ or γ̂, σ and β; matched through the client step at Ŵ
    client                 `first layer`, `every layer`   the others' update in canonical form

If uploads are summed securely, single messages show more: see `fedarena.defenses.pbpfl.message_readings`. The client's
readings are in `fedarena.defenses.pbpfl.client_readings`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fedarena.contracts.defense import Defense
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
from fedarena.defenses.pbpfl.gamma_estimate import coefficients, estimate_gamma
from fedarena.defenses.pbpfl.message_readings import cancelled, shared_mask, under_its_mask
from fedarena.defenses.pbpfl.round_readings import canonical_gradient, exact_gradient, observation, residual_of_one
from fedarena.defenses.pbpfl.wire import GAMMA, GRADIENT, UPLOADS, PBPFLWire, part_of


def readings(
    defense: Defense, wire: PBPFLWire, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
) -> Sequence[Reading] | NotApplicable:
    """See `fedarena.contracts.defense.Defense.readings`."""
    if threat.party == "client":
        return from_broadcasts(defense, wire, threat, seen, victims)
    rounds = [seen[t] for t in victims if t in seen]
    if not rounds:
        return NotApplicable("none of the rounds attacked took place")
    if threat.form == "paper":
        name = "gradient" if threat.party == "server" else "upload"
        return [Reading(name, tuple(_as_gradient(defense, wire, threat, now) for now in rounds))]
    uploads = tuple(_through_the_step(defense, wire, threat, seen, now) for now in rounds)
    return [Reading("upload", uploads), *_of_messages(defense, wire, threat, seen, rounds)]


def _of_messages(
    defense: Defense, wire: PBPFLWire, threat: Threat, seen: Mapping[int, Seen], rounds: Sequence[Seen]
) -> list[Reading]:
    """The further readings of single messages of a secure sum; empty without one."""
    if defense.secure is None:
        return []
    more = []
    if math.isfinite(defense.secure.spread):
        more.append(Reading("under its mask", tuple(under_its_mask(defense, wire, threat, now) for now in rounds)))
    if defense.secure.repeat % len(UPLOADS) == 0:
        more.append(Reading(SHARED_MASK, tuple(shared_mask(defense, wire, threat, seen, now) for now in rounds)))
        if threat.party == "server" and wire.options.gamma == "cancelling":
            more.append(Reading("cancelled", tuple(cancelled(defense, wire, threat, now) for now in rounds)))
    return more


def disclosures(
    defense: Defense, wire: PBPFLWire, threat: Threat, seen: Mapping[int, Seen], rounds: Sequence[int]
) -> Sequence[Disclosure] | NotApplicable:
    """The model: for the paper's attackers Ŵ itself, for the adaptive ones Ŵ − γ̂ r_a, which predicts as W does."""
    if threat.party == "server":
        return NotApplicable("the server holds its own model")
    disclosed = []
    for t in (t for t in rounds if t in seen):
        down, sent = seen[t].down, wire.open(seen[t].down)
        if threat.form == "paper":
            disclosed.append(Disclosure(t, wire.rounded(down, sent.params)))
        else:
            gamma = estimate_gamma(defense, wire, seen, t)
            params = wire.rounded(down, sent.without(gamma))
            disclosed.append(Disclosure(t, params, {GAMMA: torch.tensor([gamma])}))
    return disclosed or UNSEEN


def _as_gradient(defense: Defense, wire: PBPFLWire, threat: Threat, now: Seen) -> Observation:
    """What the paper's attacker reads as a gradient, matched with the model that it takes as the plain one."""
    clients, up = uploads_seen(now, threat)
    if threat.party == "server":
        params, target = now.params, exact_gradient(wire, now, up)
    else:
        params, target = wire.rounded(now.down, wire.open(now.down).params), part_of(up, GRADIENT)
    assert params is not None
    return observation(
        defense.task,
        wire,
        now,
        clients,
        target=target,
        simulate=PlainGradient(defense.task, params, clients),
        output_bias=defense.task.output_bias,
        estimate=target,
    )


def _through_the_step(
    defense: Defense, wire: PBPFLWire, threat: Threat, seen: Mapping[int, Seen], now: Seen
) -> Observation:
    """The upload, unmixed. An eavesdropper has Eq. 19 with γ̂ and without R, which only the server knows. Its estimate
    is the gradient at the canonical form, which does not contain R."""
    clients, up = uploads_seen(now, threat)
    bias, server = defense.task.output_bias, threat.party == "server"
    gamma, v = coefficients(defense, wire, threat, seen, now)
    unscaled = Unmixed(ThroughProtocol.of(defense, now, clients), gamma, v)
    parts = unscaled.unmixed(up)
    simulate = unscaled.with_sizes_of(parts)
    estimate = exact_gradient(wire, now, up) if server else canonical_gradient(wire, now, part_of(parts, GRADIENT))
    of_upload = observation(
        defense.task,
        wire,
        now,
        clients,
        target=simulate.unmixed(up),
        simulate=simulate,
        output_bias=GRADIENT + bias if bias else None,
        estimate=estimate,
        estimate_of=TrueGradient() if server else CanonicalGradient(wire.plan),
    )
    if not server or bias or of_upload.images > 1:
        return of_upload
    residual = {f"{wire.output}.bias": residual_of_one(wire, now, up)}
    return replace(of_upload, output_gradient=wire.rounded(now.down, residual))


@dataclass(frozen=True)
class Unmixed:
    """Simulator: an upload with Eq. 19 (without R) in place of ∂L̂/∂Ŵ, and its three parts brought to length 1.

    In ∂L̂/∂Ŵ as sent, γ α r_a is much larger than the effect of labels and images.

    Attributes:
        through: the upload that a candidate batch would have sent. gamma, v: γ and υ, or their estimates.
        sizes: the lengths of the three parts of what was seen.
    """

    through: ThroughProtocol
    gamma: float
    v: float
    sizes: tuple[float, ...] = (1.0, 1.0, 1.0)

    def with_sizes_of(self, parts: Tensors) -> Unmixed:
        """The simulator that brings these parts to length 1."""
        sizes = (float(flatten(part_of(parts, kind)).norm()) for kind in UPLOADS)
        return replace(self, sizes=tuple(size or 1.0 for size in sizes))

    def unmixed(self, up: Tensors) -> Tensors:
        """The unmixed form of an upload, without a change of lengths."""
        g, sigma, beta = (part_of(up, kind) for kind in UPLOADS)
        combined = {name: t - self.gamma * sigma[name] + self.v * beta[name] for name, t in g.items()}
        parts = zip(UPLOADS, self.sizes, (combined, sigma, beta), strict=True)
        return {kind + name: t / size for kind, size, tensors in parts for name, t in tensors.items()}

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        return self.unmixed(self.through(x, y))
