"""What one client's masked message shows of it, where uploads are summed securely.

`under its mask`   β of one message as it is, where masks are noise of a known size (`zero-sum`): β grows with α², and
                   is several times as large as a mask of size 1. Of one sample the first layer's part is a multiple of
                   that sample in every row, so that averaging over rows takes the mask off. No secret is needed: β is
                   a function of Ŵ and x alone

A server that sums with one mask for all three uploads (zero-sum.repeat=3, or a multiple) knows two differences of them:

`shared mask`      ∂L̂/∂Ŵ − σ and σ − β, through the client step; all of its output layer, whose β is 0
`cancelled`        with γ chosen such that 1 − γ + γ²‖r_a‖² = 0, that client's exact gradient
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from torch import Tensor

from fedarena.contracts.observation import Observation
from fedarena.contracts.simulators import PlainGradient, ThroughProtocol, victim
from fedarena.contracts.transcript import Seen, weights
from fedarena.core.tensors import Tensors, scale, shaped
from fedarena.core.threat import Threat
from fedarena.defenses.pbpfl.round_readings import coefficients, exact, observation, part, rounded
from fedarena.defenses.pbpfl.wire import BETA, GRADIENT, SIGMA, UPLOADS

if TYPE_CHECKING:
    from fedarena.defenses.pbpfl.protocol import PBPFL


@dataclass(frozen=True)
class Differences:
    """Simulator: what a mask that all three uploads share leaves in clear of them; see `differences`."""

    through: ThroughProtocol
    output: tuple[str, ...]

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        return differences(self.through(x, y), self.output)


def differences(up: Tensors, output: Sequence[str]) -> Tensors:
    """∂L̂/∂Ŵ − σ and σ − β; in the output layer, whose β is 0, so that the upload shows the mask, ∂L̂/∂Ŵ and σ."""
    first, second, third = (part(up, kind) for kind in UPLOADS)
    found = {}
    for name, t in first.items():
        taken = third[name] if name in output else second[name]
        found[f"gradient.{name}"] = t - taken
        found[f"sigma.{name}"] = second[name] - third[name]
    return found


def _message(defense: PBPFL, threat: Threat, now: Seen) -> tuple[int, Tensors, float]:
    """One client's masked upload, divided by its share N_c/N of the sum, and what that multiplied its mask by."""
    assert now.wire is not None
    one = victim(now, threat)
    sizes = weights(defense.task.sizes, now.participants)
    at = now.participants.index(one)
    like = {kind + name: t for kind in UPLOADS for name, t in defense.open(now.down)[0].items()}
    factor = float(sizes.sum() / sizes[at])
    return one, scale(factor, shaped(now.wire[at], like)), factor


@dataclass(frozen=True)
class OneUpload:
    """Simulator: β of what a candidate batch would have sent."""

    through: ThroughProtocol
    output: tuple[str, ...]

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        return hidden(self.through(x, y), self.output)


def hidden(up: Tensors, output: Sequence[str]) -> Tensors:
    """β but for the output layer's, which is 0: all that is seen of that is mask."""
    return {name: t for name, t in part(up, BETA).items() if name not in output}


def under_its_mask(defense: PBPFL, threat: Threat, now: Seen) -> Observation:
    """β of one message, and how much noise is on it."""
    assert defense.secure is not None
    one, sent, factor = _message(defense, threat, now)
    simulate = OneUpload(ThroughProtocol(defense, now.down, (one,)), defense.additive)
    found = observation(defense, now, (one,), hidden(sent, defense.additive), simulate, None, None)
    return replace(found, noise_std=factor * defense.secure.spread)


def shared_mask(defense: PBPFL, threat: Threat, seen: Mapping[int, Seen], now: Seen) -> Observation:
    """The differences that the mask leaves in clear, and by them the gradient of the output layer."""
    one, sent, _ = _message(defense, threat, now)
    simulate = Differences(ThroughProtocol(defense, now.down, (one,)), defense.additive)
    target, (gamma, _) = differences(sent, defense.additive), coefficients(defense, threat, seen, now)
    plain = {name: target[GRADIENT + name] - gamma * target[SIGMA + name] for name in defense.additive}
    if threat.party == "server":
        assert now.secret is not None
        plain = {name: t * defense.factors(now.secret)[name].to(t) for name, t in plain.items()}
    found = observation(defense, now, (one,), target, simulate, None, None)
    return replace(found, output_gradient=rounded(defense, now, plain))


def cancelled(defense: PBPFL, threat: Threat, now: Seen) -> Observation:
    """Eq. 19 of one masked upload: the mask comes in with the factor 1 − γ + γ²‖r_a‖² = 0."""
    one, sent, _ = _message(defense, threat, now)
    gradient = exact(defense, now, sent)
    assert now.params is not None
    simulate = PlainGradient(defense.task, now.params, (one,))
    return observation(defense, now, (one,), gradient, simulate, defense.task.output_bias, gradient)
