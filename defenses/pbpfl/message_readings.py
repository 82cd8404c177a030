"""What one client's masked message shows of its upload if uploads are summed securely.

`under its mask`   β of one message as it is, where masks are noise of a known size (`zero-sum`): β grows with α², and
                   is several times as large as a mask of size 1. For one sample, every row of the first layer's part
                   is a multiple of that sample, so that averaging over rows reduces the mask. No secret is needed: β
                   is a function of Ŵ and x alone

A server that sums with one mask for all three uploads (zero-sum.repeat=3, or a multiple) knows two differences of them:

`shared mask`      ∂L̂/∂Ŵ − σ and σ − β, through the client step; the whole output layer, whose β is 0
`cancelled`        with γ chosen such that 1 − γ + γ²‖r_a‖² = 0, that client's exact gradient
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from fedarena.contracts.defense import Defense
from fedarena.contracts.observation import Observation
from fedarena.contracts.simulators import PlainGradient, ThroughProtocol, victim
from fedarena.contracts.transcript import Seen, weights
from fedarena.core.tensors import Tensors, scale, shaped
from fedarena.core.threat import Threat
from fedarena.defenses.pbpfl.gamma_estimate import coefficients
from fedarena.defenses.pbpfl.round_readings import exact_gradient, observation
from fedarena.defenses.pbpfl.wire import BETA, GRADIENT, SIGMA, UPLOADS, PBPFLWire, part_of


@dataclass(frozen=True)
class Message:
    """One client's masked upload.

    Attributes:
        client: the sender.
        upload: the message divided by the client's share N_c/N of the sum.
        factor: N/N_c, by which this division multiplies the mask.
    """

    client: int
    upload: Tensors
    factor: float


def _message(defense: Defense, wire: PBPFLWire, threat: Threat, now: Seen) -> Message:
    """The message of the client that is attacked."""
    assert now.wire is not None
    client = victim(now, threat)
    sizes = weights(defense.task.sizes, now.participants)
    at = now.participants.index(client)
    like = {kind + name: t for kind in UPLOADS for name, t in wire.open(now.down).params.items()}
    factor = float(sizes.sum() / sizes[at])
    return Message(client, scale(factor, shaped(now.wire[at], like)), factor)


# -- under its mask -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HiddenBeta:
    """Simulator: β of what a candidate batch would have sent.

    Attributes:
        through: the upload that it would have sent. output: names of the output layer's parameters.
    """

    through: ThroughProtocol
    output: tuple[str, ...]

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        return hidden_beta(self.through(x, y), self.output)


def hidden_beta(up: Tensors, output: Sequence[str]) -> Tensors:
    """β without that of the output layer, which is 0, so that only its mask is seen."""
    return {name: t for name, t in part_of(up, BETA).items() if name not in output}


def under_its_mask(defense: Defense, wire: PBPFLWire, threat: Threat, now: Seen) -> Observation:
    """β of one message, and how much noise is on it."""
    assert defense.secure is not None
    message = _message(defense, wire, threat, now)
    simulate = HiddenBeta(ThroughProtocol.of(defense, now, (message.client,)), wire.additive)
    target = hidden_beta(message.upload, wire.additive)
    beta = observation(defense.task, wire, now, (message.client,), target=target, simulate=simulate)
    return replace(beta, noise_std=message.factor * defense.secure.spread)


# -- one mask for all three uploads ---------------------------------------------------------------------


@dataclass(frozen=True)
class UploadDifferences:
    """Simulator: what is in clear if all three uploads share a mask; see `upload_differences`.

    Attributes:
        through: the upload that a candidate batch would have sent. output: names of the output layer's parameters.
    """

    through: ThroughProtocol
    output: tuple[str, ...]

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        return upload_differences(self.through(x, y), self.output)


def upload_differences(up: Tensors, output: Sequence[str]) -> Tensors:
    """∂L̂/∂Ŵ − σ and σ − β. In the output layer β is 0 and shows the mask, so it gives ∂L̂/∂Ŵ and σ themselves."""
    gradient, sigma, beta = (part_of(up, kind) for kind in UPLOADS)
    in_clear = {}
    for name, t in gradient.items():
        in_clear[GRADIENT + name] = t - (beta[name] if name in output else sigma[name])
        in_clear[SIGMA + name] = sigma[name] - beta[name]
    return in_clear


def shared_mask(defense: Defense, wire: PBPFLWire, threat: Threat, seen: Mapping[int, Seen], now: Seen) -> Observation:
    """The differences that the mask leaves in clear, and the gradient of the output layer that follows from them."""
    message = _message(defense, wire, threat, now)
    simulate = UploadDifferences(ThroughProtocol.of(defense, now, (message.client,)), wire.additive)
    target = upload_differences(message.upload, wire.additive)
    gamma, _ = coefficients(defense, wire, threat, seen, now)
    plain = {name: target[GRADIENT + name] - gamma * target[SIGMA + name] for name in wire.additive}
    if threat.party == "server":
        assert now.secret is not None
        plain = {name: t * wire.factors(now.secret)[name].to(t) for name, t in plain.items()}
    in_clear = observation(defense.task, wire, now, (message.client,), target=target, simulate=simulate)
    return replace(in_clear, output_gradient=wire.rounded(now.down, plain))


def cancelled(defense: Defense, wire: PBPFLWire, threat: Threat, now: Seen) -> Observation:
    """Eq. 19 of one masked upload: the factor of the mask is 1 − γ + γ²‖r_a‖² = 0."""
    message, task = _message(defense, wire, threat, now), defense.task
    gradient = exact_gradient(wire, now, message.upload)
    assert now.params is not None
    return observation(
        task,
        wire,
        now,
        (message.client,),
        target=gradient,
        simulate=PlainGradient(task, now.params, (message.client,)),
        output_bias=task.output_bias,
        estimate=gradient,
    )
