"""What each party observes of a plain protocol: an upload in clear, or from two models the others' mean upload.

A protocol is plain if it sends parameters down, and gradients or updates up, both in clear. Protocols that add to it
build on these readings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedarena.contracts.defense import Defense
from fedarena.contracts.estimand import GRADIENT
from fedarena.contracts.fresh_uploads import fresh_upload
from fedarena.contracts.observation import Observation, Reading
from fedarena.contracts.simulators import (
    PlainGradient,
    ThroughProtocol,
    client_rounds,
    images_behind,
    others_of,
    uploads_seen,
    without_own,
)
from fedarena.contracts.transcript import Seen
from fedarena.core.tensors import Tensors, scale
from fedarena.core.threat import NotApplicable, Threat


def readings(
    defense: Defense, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
) -> Sequence[Reading] | NotApplicable:
    """The readings of a plain protocol. See `fedarena.contracts.defense.Defense.readings`."""
    if threat.party == "client":
        rounds = client_rounds(defense, threat, seen, victims)
        if isinstance(rounds, NotApplicable):
            return rounds
        others = {t: _others_upload(defense, threat, seen[t], seen[t + 1]) for t in rounds}
        return [Reading("difference", _observations(defense, threat, seen, others))]
    uploads = {t: uploads_seen(seen[t], threat) for t in victims if t in seen}
    if not uploads:
        return NotApplicable("none of the rounds attacked took place")
    return [Reading("upload", _observations(defense, threat, seen, uploads))]


def _observations(
    defense: Defense, threat: Threat, seen: Mapping[int, Seen], uploads: Mapping[int, tuple[tuple[int, ...], Tensors]]
) -> tuple[Observation, ...]:
    """One observation for each round, of the clients and of their mean upload in `uploads`."""

    def others_upload(t: int) -> Tensors | None:
        return _others_upload(defense, threat, seen[t], seen[t + 1])[1] if t + 1 in seen else None

    observations = []
    for t, (clients, upload) in uploads.items():
        fresh = fresh_upload(defense, threat, seen, t, clients, upload, others_upload)
        observations.append(observation(defense, threat, seen[t], clients, upload, fresh))
    return tuple(observations)


def observation(
    defense: Defense,
    threat: Threat,
    now: Seen,
    clients: tuple[int, ...],
    upload: Tensors,
    fresh: Tensors | None,
) -> Observation:
    """An observation. The paper form takes the update per local step and learning rate as the plain gradient.

    Args:
        fresh: what the round alone added to a momentum upload, where the party can tell it. Else it is matched as if
            it held no gradients of earlier rounds.
    """
    defense = defense.in_round(now.index)
    task, gradient = defense.task, plain_gradient(defense, upload, fresh, clients)
    adaptive = threat.form == "adaptive"
    through, plain = ThroughProtocol.of(defense, now, clients), PlainGradient(task, now.down, clients)
    return Observation(
        round=now.index,
        clients=clients,
        images=sum(images_behind(task, c) for c in clients),
        target=(upload if fresh is None else fresh) if adaptive else gradient,
        simulate=through if adaptive else plain,
        output_bias=task.output_bias,
        estimate=gradient,
        estimate_of=GRADIENT,
    )


def plain_gradient(defense: Defense, upload: Tensors, fresh: Tensors | None, clients: Sequence[int]) -> Tensors:
    """The plain gradient that an upload represents, or what a round alone added to a momentum, where that is known."""
    if fresh is None:
        return per_step(defense, upload, clients)
    return scale(1 / defense.task.schedule.fresh_share, fresh)


def per_step(defense: Defense, upload: Tensors, clients: Sequence[int]) -> Tensors:
    """The plain gradient that an upload represents: after local epochs, the update per step and learning rate."""
    schedule = defense.task.schedule
    if schedule.fedsgd:
        return upload
    steps = sum(schedule.steps(defense.task.sizes[c]) for c in clients) / len(clients)
    return scale(1 / (schedule.lr * steps), upload)


def _others_upload(defense: Defense, threat: Threat, now: Seen, after: Seen) -> tuple[tuple[int, ...], Tensors]:
    """The other clients, and their mean upload of a round, from W_t and W_{t+1}."""
    assert now.own_up is not None
    total = defense.in_round(now.index).direction_between(now.down, after.down)
    return others_of(now, threat), without_own(total, now.own_up, defense.mean_weights, now, threat)
