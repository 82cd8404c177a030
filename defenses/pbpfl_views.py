"""What each party makes of what it sees of PBPFL.

The paper's attackers read noise as if it were the model:

    server         `gradient`     the exact gradient, by Eq. 19; matched with the plain model at W
    eavesdropper   `upload`       ∂L̂/∂Ŵ; matched with the plain model at Ŵ
    client         `difference`   (Ŵ_t − Ŵ_{t+1})/η less its own ∂L̂/∂Ŵ; matched with the plain model at Ŵ_t

The adaptive ones know that the masked model is a network like any other, and that the multiplicative mask is the
positive scaling of ReLU units, which no function depends on:

    server, eavesdropper   `upload`      Eq. 19 with γ or γ̂, σ and β; matched through the client step at Ŵ
    client                 `first layer` the others' update of the layers that read the input

The client finds γ̂ by two broadcasts (`fedarena.attacks.unmask`), takes γ̂ r_a off the output layer and brings what
is left into the canonical form C(W), with incoming weights of length 1 (`fedarena.positive_scaling`). From round to
round C changes by the update of the hidden layers alone. Row i of a layer that reads the input moves from c along
−∂L/∂c_i, by a length that depends on the unknown ‖w_i‖: so what is matched is the direction of each row's change,
orthogonal to c.

A server that sums securely with one mask for all three uploads (zero-sum.repeat=3) knows two differences of them:

    `shared mask`   ∂L̂/∂Ŵ − σ and σ − β of one client, through the client step; all of its output layer, whose β is 0
    `cancelled`     with γ chosen such that 1 − γ + γ²‖r_a‖² = 0, that client's exact gradient
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fedarena.attacks.unmask import Masked, gamma_from_columns, gamma_from_labels, gammas_from_two
from fedarena.defense import Broadcast, Reading
from fedarena.defenses.pbpfl_wire import GAMMA, GRADIENT, R_A, SIGMA, UPLOADS
from fedarena.observe import (
    PlainGradient,
    ThroughProtocol,
    images_behind,
    others_of,
    uploads_seen,
    victim,
    without_own,
)
from fedarena.positive_scaling import ScalingPlan, canonical
from fedarena.tensors import Tensors, combine, flatten, row, scale, shaped
from fedarena.threat import NotApplicable, Threat
from fedarena.transcript import Seen, weights
from fedarena.view import Disclosure, Observation, Simulator

if TYPE_CHECKING:
    from fedarena.defenses.pbpfl import PBPFL


def readings(
    defense: PBPFL, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
) -> Sequence[Reading] | NotApplicable:
    """See `fedarena.defense.Defense.readings`."""
    if threat.party == "client":
        return _from_broadcasts(defense, threat, seen, victims)
    rounds = [seen[t] for t in victims if t in seen]
    if not rounds:
        return NotApplicable("none of the rounds attacked took place")
    found = [Reading(*_upload(defense, threat, seen, rounds))]
    if threat.form == "adaptive" and defense.secure is not None and defense.secure.repeat == len(UPLOADS):
        found.append(Reading("shared mask", tuple(_shared_mask(defense, threat, seen, now) for now in rounds)))
        if threat.party == "server" and defense.options.gamma == "cancelling":
            found.append(Reading("cancelled", tuple(_cancelled(defense, threat, now) for now in rounds)))
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
            found.append(Disclosure(t, sent.params))
        else:
            gamma = estimate_gamma(defense, seen, t)
            found.append(Disclosure(t, sent.without(gamma), {GAMMA: torch.tensor([gamma])}))
    return found or NotApplicable("the party saw none of the rounds looked at")


# -- the additive mask ----------------------------------------------------------------------------------


def opened(defense: PBPFL, now: Seen) -> Masked:
    """A round's broadcast."""
    return Masked(*defense.open(now.down), defense.additive)


def estimate_gamma(defense: PBPFL, seen: Mapping[int, Seen], t: int) -> float:
    """γ̂ of round t by the broadcast after it or before it; of a party that saw neither by its labels, if it has any."""
    now = opened(defense, seen[t])
    for other in (t + 1, t - 1):
        if other in seen:
            return gammas_from_two(now, opened(defense, seen[other]), defense.plan)[0]
    own = seen[t].own_data
    if own is None:
        return gamma_from_columns(now)
    return gamma_from_labels(now, defense.wide, defense.task.criterion, *own.images())


# -- server and eavesdropper: uploads -------------------------------------------------------------------


def _upload(
    defense: PBPFL, threat: Threat, seen: Mapping[int, Seen], rounds: Sequence[Seen]
) -> tuple[str, tuple[Observation, ...]]:
    """The upload as it is, or what the paper's attacker reads as a gradient."""
    simulate: Simulator
    name = "gradient" if (threat.party, threat.form) == ("server", "paper") else "upload"
    observations = []
    for now in rounds:
        clients, up = uploads_seen(now, threat)
        estimate = _exact(defense, now, up) if threat.party == "server" else _overheard(defense, threat, seen, now, up)
        if threat.form == "adaptive":
            simulate = Unmixed.of(
                ThroughProtocol(defense, now.down, clients), up, _coefficients(defense, threat, seen, now)
            )
            target = simulate.unmixed(up)
            bias = GRADIENT + defense.task.output_bias if defense.task.output_bias else None
        else:
            at = now.params if threat.party == "server" else defense.open(now.down)[0]
            assert at is not None
            target, simulate, bias = estimate, PlainGradient(defense.task, at, clients), defense.task.output_bias
        observations.append(_observation(defense, now, clients, target, simulate, bias, estimate))
    return name, tuple(observations)


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

    @classmethod
    def of(cls, through: ThroughProtocol, up: Tensors, coefficients: tuple[float, float]) -> Unmixed:
        """With the sizes of an upload."""
        parts = cls(through, *coefficients).unmixed(up)
        sizes = (float(flatten(part(parts, kind)).norm()) for kind in UPLOADS)
        return cls(through, *coefficients, tuple(size or 1.0 for size in sizes))

    def unmixed(self, up: Tensors) -> Tensors:
        """Of an upload."""
        g, sigma, beta = (part(up, kind) for kind in UPLOADS)
        combined = {name: t - self.gamma * sigma[name] + self.v * beta[name] for name, t in g.items()}
        parts = zip(UPLOADS, self.sizes, (combined, sigma, beta), strict=True)
        return {kind + name: t / size for kind, size, tensors in parts for name, t in tensors.items()}

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        return self.unmixed(self.through(x, y))


def _coefficients(defense: PBPFL, threat: Threat, seen: Mapping[int, Seen], now: Seen) -> tuple[float, float]:
    """γ and υ: the server's own, or estimates."""
    if threat.party == "server":
        assert now.secret is not None
        gamma = float(now.secret[GAMMA])
    else:
        gamma = estimate_gamma(defense, seen, now.index)
    return gamma, gamma**2 * float(now.down[R_A].square().sum())


def part(up: Tensors, kind: str) -> Tensors:
    """One of the three uploads, by the plain model's names."""
    return {name.removeprefix(kind): t for name, t in up.items() if name.startswith(kind)}


def _exact(defense: PBPFL, now: Seen, up: Tensors) -> Tensors:
    assert now.secret is not None
    stacked = {name: t[None] for name, t in up.items()}
    return row(defense.recover(Broadcast(now.down, now.secret), stacked)[0], 0)


def _overheard(defense: PBPFL, threat: Threat, seen: Mapping[int, Seen], now: Seen, up: Tensors) -> Tensors:
    """∂L̂/∂Ŵ as it is; or Eq. 19 with γ̂ and without R, which is right in the output layer's bias and right in direction
    in every row whose columns have no factor."""
    if threat.form == "paper":
        return part(up, GRADIENT)
    through = ThroughProtocol(defense, now.down, ())
    return part(Unmixed(through, *_coefficients(defense, threat, seen, now)).unmixed(up), GRADIENT)


def _observation(
    defense: PBPFL,
    now: Seen,
    clients: tuple[int, ...],
    target: Tensors,
    simulate: Simulator,
    bias: str | None,
    estimate: Tensors | None,
    of: str = "gradient",
) -> Observation:
    images = sum(images_behind(defense.task, c) for c in clients)
    return Observation(now.index, clients, images, target, simulate, bias, estimate, of)


# -- one mask for three uploads -------------------------------------------------------------------------


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


def _message(defense: PBPFL, threat: Threat, now: Seen) -> tuple[int, Tensors]:
    """One client's masked upload, divided by its share N_c/N of the sum."""
    assert now.wire is not None
    one = victim(now, threat)
    sizes = weights(defense.task.sizes, now.participants)
    at = now.participants.index(one)
    like = {kind + name: t for kind in UPLOADS for name, t in defense.open(now.down)[0].items()}
    return one, scale(float(sizes.sum() / sizes[at]), shaped(now.wire[at], like))


def _shared_mask(defense: PBPFL, threat: Threat, seen: Mapping[int, Seen], now: Seen) -> Observation:
    one, sent = _message(defense, threat, now)
    simulate = Differences(ThroughProtocol(defense, now.down, (one,)), defense.additive)
    target, (gamma, _) = differences(sent, defense.additive), _coefficients(defense, threat, seen, now)
    plain = {name: target[GRADIENT + name] - gamma * target[SIGMA + name] for name in defense.additive}
    if threat.party == "server":
        assert now.secret is not None
        plain = {name: t * defense.factors(now.secret)[name].to(t) for name, t in plain.items()}
    found = _observation(defense, now, (one,), target, simulate, None, None)
    return replace(found, output_gradient=plain)


def _cancelled(defense: PBPFL, threat: Threat, now: Seen) -> Observation:
    """Eq. 19 of one masked upload: the mask comes in with the factor 1 − γ + γ²‖r_a‖² = 0."""
    one, sent = _message(defense, threat, now)
    exact = _exact(defense, now, sent)
    assert now.params is not None
    simulate = PlainGradient(defense.task, now.params, (one,))
    return _observation(defense, now, (one,), exact, simulate, defense.task.output_bias, exact)


# -- a client: two consecutive broadcasts ---------------------------------------------------------------


def _from_broadcasts(
    defense: PBPFL, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
) -> Sequence[Reading] | NotApplicable:
    if defense.task.schedule.server_optimizer != "sgd":
        return NotApplicable(
            "the server's Adam steps do not show the clients' mean gradient, and this attack does not invert Adam"
        )
    if defense.rule is not None:
        return NotApplicable("consecutive broadcasts show what the server's rule made of the uploads, not their mean")
    rounds = [t for t in victims if t in seen and t + 1 in seen and others_of(seen[t], threat)]
    if not rounds:
        return NotApplicable(
            "the malicious client was not sampled in two consecutive rounds together with another client"
        )
    if threat.form == "paper":
        return [Reading("difference", tuple(_difference(defense, threat, seen[t], seen[t + 1]) for t in rounds))]
    if not reading_the_input(defense.plan):
        return NotApplicable("no layer with units of its own reads the input")
    return [Reading("first layer", tuple(_first_layer(defense, threat, seen, t) for t in rounds))]


def _difference(defense: PBPFL, threat: Threat, now: Seen, after: Seen) -> Observation:
    others, (before, _), (then, _) = others_of(now, threat), defense.open(now.down), defense.open(after.down)
    total = scale(1 / defense.step_size, combine(1.0, before, -1.0, then))
    assert now.own_up is not None
    target = without_own(total, part(now.own_up, GRADIENT), defense.task.sizes, now, threat)
    plain = PlainGradient(defense.task, before, others)
    return _observation(defense, now, others, target, plain, defense.task.output_bias, target)


def canonical_model(defense: PBPFL, seen: Mapping[int, Seen], t: int) -> Tensors:
    """C(W) of one round, in double precision, its output layer up to the error of γ̂."""
    freed = opened(defense, seen[t]).without(estimate_gamma(defense, seen, t))
    return canonical(defense.plan, {name: p.double() for name, p in freed.items()})


@dataclass(frozen=True)
class RowDirections:
    """Simulator: where the rows of the layers that read the input go, when the others hold a candidate batch.

    Attributes:
        others: the plain gradient of the others' samples at C(W_t).
        own: the party's own gradient there. share: its part N_a/N of the mean.
        layers: names of the layers. sizes: how long each row's direction counts.
    """

    others: PlainGradient
    own: Tensors
    share: float
    layers: tuple[str, ...]
    sizes: Tensors

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        gradient = combine(1 - self.share, self.others(x, y), self.share, self.own)
        return directions(gradient, self.others.params, self.layers, self.sizes)


def directions(change: Tensors, c: Tensors, layers: Sequence[str], sizes: Tensors) -> Tensors:
    """Each row of `change`, its bias included, orthogonal to the row of `c`, brought to the length in `sizes`."""
    found = {}
    for layer in layers:
        along = orthogonal(rows_of(change, layer), rows_of(c, layer))
        length = (along.square().sum(1) + torch.finfo(along.dtype).tiny).sqrt()
        found[layer] = along * (sizes[layer].to(along) / length)[:, None]
    return found


def orthogonal(rows: Tensor, unit: Tensor) -> Tensor:
    """Each row less its part along the row of length 1 in `unit`."""
    return rows - (rows * unit).sum(1, keepdim=True) * unit


def rows_of(tensors: Tensors, layer: str) -> Tensor:
    """The incoming weights of each unit, and its bias as one more: [units, d]."""
    weight, bias = tensors[f"{layer}.weight"].flatten(1), tensors.get(f"{layer}.bias")
    return weight if bias is None else torch.cat([weight, bias[:, None]], 1)


def reading_the_input(plan: ScalingPlan) -> tuple[str, ...]:
    """The hidden layers that read nothing but the network's input."""
    return tuple(layer.name for layer in plan.layers[:-1] if all(run.group is None for run in layer.columns))


def hidden(defense: PBPFL, tensors: Tensors) -> Tensors:
    """Without the output layer."""
    return {name: t for name, t in tensors.items() if name not in defense.additive}


def _first_layer(defense: PBPFL, threat: Threat, seen: Mapping[int, Seen], t: int) -> Observation:
    task, now, layers = defense.task, seen[t], reading_the_input(defense.plan)
    others, c = others_of(now, threat), canonical_model(defense, seen, t)
    change = combine(1.0, c, -1.0, canonical_model(defense, seen, t + 1))
    sizes = {layer: orthogonal(rows_of(change, layer), rows_of(c, layer)).norm(dim=1) for layer in layers}

    def rounded(tensors: Tensors) -> Tensors:
        return {name: p.to(now.down[R_A]) for name, p in tensors.items()}

    averaged, here = now.summed or now.participants, rounded(c)
    share = task.sizes[threat.client] / sum(task.sizes[i] for i in averaged) if threat.client in averaged else 0.0
    assert now.own_batch is not None
    own = PlainGradient(task, here, (threat.client,))(*now.own_batch.images())
    simulate = RowDirections(PlainGradient(task, here, others), own, share, layers, rounded(sizes))
    target, estimate = rounded(directions(change, c, layers, sizes)), rounded(hidden(defense, change))
    found = _observation(defense, now, others, target, simulate, None, estimate, "canonical update")
    return replace(found, output_gradient=_bias_gradient(defense, threat, seen, t, own))


def _bias_gradient(defense: PBPFL, threat: Threat, seen: Mapping[int, Seen], t: int, own: Tensors) -> Tensors | None:
    """The others' mean gradient of the output layer's bias, masked by γ r_a alone: (b_t − b_{t+1})/η less one's own."""
    bias = defense.task.output_bias
    if bias is None:
        return None
    now, then = (opened(defense, seen[u]).without(estimate_gamma(defense, seen, u))[bias] for u in (t, t + 1))
    total = {bias: (now - then) / defense.step_size}
    return without_own(total, {bias: own[bias]}, defense.task.sizes, seen[t], threat)
