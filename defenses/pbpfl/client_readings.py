"""What a client of PBPFL makes of two consecutive broadcasts.

The client finds γ̂ by two broadcasts (`fedarena.defenses.pbpfl.gamma`), takes γ̂ r_a off the output layer and brings what
is left into the canonical form C(W), with incoming weights of length 1 (`fedarena.models.scaling.positive_scaling`). C
changes by the update, seen up to the units' unknown lengths. There are two ways around those:

    `first layer`   the directions in which the rows of layers that read the input go
    (`fedarena.defenses.pbpfl.canonical_rows`)
    `every layer`   all of C, with the lengths that a candidate implies (`fedarena.defenses.pbpfl.every_layer`)

Of one sample a dense first layer shows everything, and is easily descended; a convolution's shows too little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fedarena.contracts.observation import Observation, Reading, Simulator
from fedarena.contracts.simulators import PlainGradient, WithOwn, others_of, own_share, why_no_difference, without_own
from fedarena.contracts.transcript import Seen
from fedarena.core.tensors import Tensors, combine, scale
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.pbpfl.canonical_rows import RowDirections, directions, lengths, reading_the_input
from fedarena.defenses.pbpfl.estimands import CanonicalUpdate
from fedarena.defenses.pbpfl.every_layer import EveryLayer, sized, sizes_of
from fedarena.defenses.pbpfl.round_readings import estimate_gamma, observation, opened, part, rounded
from fedarena.defenses.pbpfl.wire import GRADIENT
from fedarena.models.scaling.positive_scaling import canonical

if TYPE_CHECKING:
    from fedarena.defenses.pbpfl.protocol import PBPFL

EVERY, FIRST = "every layer", "first layer"
"""The readings in the adaptive form."""


def from_broadcasts(
    defense: PBPFL, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
) -> Sequence[Reading] | NotApplicable:
    """What a client reads; see `fedarena.contracts.defense.Defense.readings`."""
    if defense.task.schedule.server_optimizer != "sgd":
        return NotApplicable(
            "the server's Adam steps do not show the clients' mean gradient, and this attack does not invert Adam"
        )
    if why := defense.why_not_mean():
        return NotApplicable(why)
    rounds = [t for t in victims if t in seen and t + 1 in seen and others_of(seen[t], threat)]
    if not rounds:
        return NotApplicable(why_no_difference(defense.task))
    if threat.form == "paper":
        return [Reading("difference", tuple(_difference(defense, threat, seen[t], seen[t + 1]) for t in rounds))]
    found = [_canonical(defense, threat, seen, t) for t in rounds]
    return [Reading(name, tuple(of_round[name] for of_round in found)) for name in found[0]]


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


def hidden(defense: PBPFL, tensors: Tensors) -> Tensors:
    """Without the output layer."""
    return {name: t for name, t in tensors.items() if name not in defense.additive}


def _canonical(defense: PBPFL, threat: Threat, seen: Mapping[int, Seen], t: int) -> dict[str, Observation]:
    """What C(W_t) − C(W_{t+1}) tells of the others' samples, by the name of the reading."""
    task, now, plan = defense.task, seen[t], defense.plan
    others, models = others_of(now, threat), (freed(defense, seen, t), freed(defense, seen, t + 1))
    c, after = (canonical(plan, model) for model in models)
    moved = combine(1.0, c, -1.0, after)

    counted, here = defense.mean_weights, rounded(defense, now, c)
    assert now.own_batch is not None
    own = PlainGradient(task, here, (threat.client,))(*now.own_batch.images())
    mean = WithOwn(PlainGradient(task, here, others), own, own_share(counted, now, threat))
    told = None
    if bias := task.output_bias:
        # γ r_a alone masks the output bias, so that its step is the clients' mean gradient.
        total = rounded(defense, now, {bias: (models[0][bias] - models[1][bias]) / defense.step_size})
        told = without_own(total, {bias: own[bias]}, counted, now, threat)

    sizes = sizes_of(plan, moved, c)
    whole = EveryLayer(mean, plan, defense.step_size, rounded(defense, now, after), sizes)
    found: dict[str, tuple[Tensors, Simulator]] = {EVERY: (sized(moved, sizes), whole)}
    if layers := reading_the_input(plan):
        units = lengths(moved, c, layers)
        rows = RowDirections(mean, layers, rounded(defense, now, units))
        found[FIRST] = directions(moved, c, layers, units), rows
    estimate = hidden(defense, moved) or None
    return {
        name: replace(
            observation(defense, now, others, target, simulate, None, estimate, CanonicalUpdate(defense.plan)),
            output_gradient=told,
        )
        for name, (target, simulate) in found.items()
    }
