"""What a client of PBPFL observes in two consecutive broadcasts.

The client estimates γ (`fedarena.defenses.pbpfl.gamma_estimate`), subtracts γ̂ r_a from the output layer and brings the
model into the canonical form C(W), with incoming weights of length 1 (`fedarena.models.scaling.positive_scaling`). C
changes by the update, seen up to the units' unknown lengths. Two readings do not need these lengths:

    `first layer`   the directions in which rows of layers move that read the input
                    (`fedarena.defenses.pbpfl.canonical_rows`)
    `every layer`   all of C, with the lengths that a candidate implies (`fedarena.defenses.pbpfl.every_layer`)

A dense first layer shows all of a single sample, and is easy to match; a convolution shows too little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fedarena.contracts.defense import Defense
from fedarena.contracts.observation import Observation, Reading, Simulator
from fedarena.contracts.simulators import (
    PlainGradient,
    WithOwn,
    client_rounds,
    hidden_decay,
    others_of,
    own_share,
    without_own,
)
from fedarena.contracts.transcript import Seen
from fedarena.core.tensors import Tensors, combine
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.pbpfl.canonical_rows import RowDirections, directions, lengths, reading_the_input
from fedarena.defenses.pbpfl.estimands import CanonicalUpdate
from fedarena.defenses.pbpfl.every_layer import EveryLayer, sized, sizes_of
from fedarena.defenses.pbpfl.gamma_estimate import estimate_gamma
from fedarena.defenses.pbpfl.round_readings import observation
from fedarena.defenses.pbpfl.wire import GRADIENT, PBPFLWire, part_of
from fedarena.models.scaling.positive_scaling import canonical

EVERY, FIRST = "every layer", "first layer"
"""The readings in the adaptive form."""


def from_broadcasts(
    defense: Defense, wire: PBPFLWire, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
) -> Sequence[Reading] | NotApplicable:
    """What a client reads; see `fedarena.contracts.defense.Defense.readings`."""
    rounds = hidden_decay(defense) or client_rounds(defense, threat, seen, victims, hidden="the clients' mean gradient")
    if isinstance(rounds, NotApplicable):
        return rounds
    if threat.form == "paper":
        observations = [_difference(defense, wire, threat, seen[t], seen[t + 1]) for t in rounds]
        return [Reading("difference", tuple(observations))]
    by_round = [_canonical_update(defense, wire, threat, seen, t) for t in rounds]
    return [Reading(name, tuple(of_round[name] for of_round in by_round)) for name in by_round[0]]


def _difference(defense: Defense, wire: PBPFLWire, threat: Threat, now: Seen, after: Seen) -> Observation:
    """The paper's form: (Ŵ_t − Ŵ_{t+1})/η minus the client's own ∂L̂/∂Ŵ."""
    others = others_of(now, threat)
    before, then = (wire.rounded(now.down, wire.open(one.down).params) for one in (now, after))
    total = defense.in_round(now.index).direction_between(before, then)
    assert now.own_up is not None
    own = wire.rounded(now.down, part_of(now.own_up, GRADIENT))
    target = without_own(total, own, defense.mean_weights, now, threat)
    return observation(
        defense.task,
        wire,
        now,
        others,
        target=target,
        simulate=PlainGradient(defense.task, before, others),
        output_bias=defense.task.output_bias,
        estimate=target,
    )


def _canonical_update(
    defense: Defense, wire: PBPFLWire, threat: Threat, seen: Mapping[int, Seen], t: int
) -> dict[str, Observation]:
    """The observations of the others' samples from C(W_t) − C(W_{t+1}), by the name of the reading."""
    defense = defense.in_round(t)
    now, plan, others = seen[t], wire.plan, others_of(seen[t], threat)
    models = (_unmasked(defense, wire, seen, t), _unmasked(defense, wire, seen, t + 1))
    c, after = (canonical(plan, model) for model in models)
    update = combine(1.0, c, -1.0, after)
    mean, own = _with_own(defense, wire, threat, now, c)

    sizes = sizes_of(plan, update, c)
    whole = EveryLayer(mean=mean, plan=plan, step=defense.step_size, after=wire.rounded(now.down, after), sizes=sizes)
    ways: dict[str, tuple[Tensors, Simulator]] = {EVERY: (sized(update, sizes), whole)}
    if layers := reading_the_input(plan):
        units = lengths(update, c, layers)
        ways[FIRST] = directions(update, c, layers, units), RowDirections(mean, layers, wire.rounded(now.down, units))

    output_gradient = _output_gradient(defense, wire, threat, now, models, own)
    observations = {}
    for name, (target, simulate) in ways.items():
        of_way = observation(
            defense.task,
            wire,
            now,
            others,
            target=target,
            simulate=simulate,
            estimate=wire.hidden(update) or None,
            estimate_of=CanonicalUpdate(wire.plan),
        )
        observations[name] = replace(of_way, output_gradient=output_gradient)
    return observations


def _unmasked(defense: Defense, wire: PBPFLWire, seen: Mapping[int, Seen], t: int) -> Tensors:
    """R ∘ W of one round in double precision, its output layer up to the error of γ̂."""
    params = wire.open(seen[t].down).without(estimate_gamma(defense, wire, seen, t))
    return {name: p.double() for name, p in params.items()}


def _with_own(defense: Defense, wire: PBPFLWire, threat: Threat, now: Seen, c: Tensors) -> tuple[WithOwn, Tensors]:
    """The clients' mean gradient at C when the others hold a candidate, and the party's own gradient there."""
    here = wire.rounded(now.down, c)
    assert now.own_batch is not None
    own = PlainGradient(defense.task, here, (threat.client,))(*now.own_batch.images())
    others = PlainGradient(defense.task, here, others_of(now, threat))
    return WithOwn(others, own, own_share(defense.mean_weights, now, threat)), own


def _output_gradient(
    defense: Defense, wire: PBPFLWire, threat: Threat, now: Seen, models: tuple[Tensors, Tensors], own: Tensors
) -> Tensors | None:
    """The others' mean gradient of the output bias, if there is one. Only γ r_a masks it, so its step shows it."""
    bias = defense.task.output_bias
    if bias is None:
        return None
    total = wire.rounded(now.down, {bias: (models[0][bias] - models[1][bias]) / defense.step_size})
    return without_own(total, {bias: own[bias]}, defense.mean_weights, now, threat)
