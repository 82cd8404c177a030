"""The model that the clients behind an observation would have led to alone, as a party knows it.

With W the model that a round began with, and g the party's estimate of the clients' gradient (`Observation.estimate`),

    FedSGD        W − lr·g              one step of that gradient
    local steps   W − lr·steps·g        the client's own model W_c where the upload W − W_c is in clear

Where the estimate is of the server's update W_t − W_{t+1}, the model is W less the estimate. A server knows W. Another
party has what a broadcast discloses of it. Whoever does not know W, or has an estimate of some parameters alone, has no
such model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fedarena.contracts.defense import Defense
from fedarena.contracts.final_model import WhiteBox
from fedarena.contracts.observation import Observation
from fedarena.contracts.transcript import Seen
from fedarena.core.tensors import Tensors, combine, finite, same_names, shapes_of
from fedarena.core.threat import NotApplicable, Threat


def with_left_models(
    defense: Defense, threat: Threat, seen: Mapping[int, Seen], observations: Sequence[Observation]
) -> tuple[Observation, ...]:
    """The observations, each with the model that its clients led to, where the party knows it.

    Args:
        seen: the rounds that the party saw.
    """
    begun = {t: _model_before(defense, threat, seen, t) for t in {o.round for o in observations}}
    return tuple(replace(o, left=_left(defense, o, begun[o.round])) for o in observations)


def _model_before(defense: Defense, threat: Threat, seen: Mapping[int, Seen], t: int) -> Tensors | None:
    """W of a round, as far as the party can tell; None where it cannot."""
    if t not in seen:
        return None
    if (own := seen[t].params) is not None:
        return own
    told = defense.disclosures(threat, seen, [t])
    return None if isinstance(told, NotApplicable) else told[0].params


def _left(defense: Defense, o: Observation, before: Tensors | None) -> WhiteBox | None:
    names = tuple(name for name, _ in defense.task.model.named_parameters())
    if before is None or o.estimate is None or not (before.keys() >= {*names} and o.estimate.keys() >= {*names}):
        return None
    old, moved = same_names(before, names), same_names(o.estimate, names)
    if shapes_of(old) != shapes_of(moved):
        return None
    model = combine(1.0, old, -_length(defense.in_round(o.round), o), moved)
    return WhiteBox(defense.task, model) if finite(model) else None


def _length(defense: Defense, o: Observation) -> float:
    """By what the estimate is multiplied to be the step that its clients led to."""
    if not o.estimate_of.gradient:
        return 1.0
    task, schedule = defense.task, defense.task.schedule
    return schedule.lr * sum(schedule.steps(task.sizes[c]) for c in o.clients) / len(o.clients)
