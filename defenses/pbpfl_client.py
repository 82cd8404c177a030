"""What a client of PBPFL makes of two consecutive broadcasts.

The client finds γ̂ by two broadcasts (`fedarena.attacks.unmask`), takes γ̂ r_a off the output layer and brings what
is left into the canonical form C(W), with incoming weights of length 1 (`fedarena.positive_scaling`). From round to
round C changes by the update of the hidden layers alone. Row i of a layer that reads the input moves from c along
−∂L/∂c_i, by a length that depends on the unknown ‖w_i‖: so what is matched is the direction of each row's change,
orthogonal to c.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fedarena.defense import Reading
from fedarena.defenses.pbpfl_sight import estimate_gamma, observation, opened, part, rounded
from fedarena.defenses.pbpfl_wire import GRADIENT
from fedarena.observe import PlainGradient, others_of, own_share, why_no_difference, without_own
from fedarena.positive_scaling import ScalingPlan, canonical
from fedarena.tensors import Tensors, combine, scale
from fedarena.threat import NotApplicable, Threat
from fedarena.transcript import Seen
from fedarena.view import Observation

if TYPE_CHECKING:
    from fedarena.defenses.pbpfl import PBPFL


def from_broadcasts(
    defense: PBPFL, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
) -> Sequence[Reading] | NotApplicable:
    """What a client reads; see `fedarena.defense.Defense.readings`."""
    if defense.task.schedule.server_optimizer != "sgd":
        return NotApplicable(
            "the server's Adam steps do not show the clients' mean gradient, and this attack does not invert Adam"
        )
    if why := defense.no_mean():
        return NotApplicable(why)
    rounds = [t for t in victims if t in seen and t + 1 in seen and others_of(seen[t], threat)]
    if not rounds:
        return NotApplicable(why_no_difference(defense.task))
    if threat.form == "paper":
        return [Reading("difference", tuple(_difference(defense, threat, seen[t], seen[t + 1]) for t in rounds))]
    if not reading_the_input(defense.plan):
        return NotApplicable("no layer with units of its own reads the input")
    return [Reading("first layer", tuple(_first_layer(defense, threat, seen, t) for t in rounds))]


def _difference(defense: PBPFL, threat: Threat, now: Seen, after: Seen) -> Observation:
    others = others_of(now, threat)
    before, then = (rounded(defense, now, defense.open(one.down)[0]) for one in (now, after))
    total = scale(1 / defense.step_size, combine(1.0, before, -1.0, then))
    assert now.own_up is not None
    own = rounded(defense, now, part(now.own_up, GRADIENT))
    target = without_own(total, own, defense.mean_weights, now, threat)
    plain = PlainGradient(defense.task, before, others)
    return observation(defense, now, others, target, plain, defense.task.output_bias, target)


def freed(defense: PBPFL, seen: Mapping[int, Seen], t: int) -> Tensors:
    """R ∘ W of one round in double precision, its output layer up to the error of γ̂."""
    found = opened(defense, seen[t]).without(estimate_gamma(defense, seen, t))
    return {name: p.double() for name, p in found.items()}


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
    others, models = others_of(now, threat), (freed(defense, seen, t), freed(defense, seen, t + 1))
    c, after = (canonical(defense.plan, model) for model in models)
    change = combine(1.0, c, -1.0, after)
    sizes = {layer: orthogonal(rows_of(change, layer), rows_of(c, layer)).norm(dim=1) for layer in layers}

    counted, here = defense.mean_weights, rounded(defense, now, c)
    assert now.own_batch is not None
    share = own_share(counted, now, threat)
    own = PlainGradient(task, here, (threat.client,))(*now.own_batch.images())
    simulate = RowDirections(PlainGradient(task, here, others), own, share, layers, rounded(defense, now, sizes))
    target, estimate = directions(change, c, layers, sizes), hidden(defense, change)
    found = observation(defense, now, others, target, simulate, None, estimate, "canonical update")
    bias = task.output_bias
    if bias is None:
        return found
    # γ r_a alone masks the output bias, so that its step is the clients' mean gradient.
    total = rounded(defense, now, {bias: (models[0][bias] - models[1][bias]) / defense.step_size})
    return replace(found, output_gradient=without_own(total, {bias: own[bias]}, counted, now, threat))
