"""What each party observes of DBCL.

The paper's attackers turn sketches into plain tensors and proceed as against FedAvg:

    server, eavesdropper   `expanded`    Γ_c Sᵀ for the gradient
    client                 `option-I`    Δ̂ = W̃_t S_tᵀ − W̃_{t+1} S_{t+1}ᵀ                (Section 5.1)
                           `option-II`   Δ̂ = W̃_t S_t† − W̃_{t+1} S_{t+1}†               (Section 6.3)

The eavesdropper lacks W. It takes W̃ Sᵀ as the plain model. This is the network that the client ran, so the paper form
of the eavesdropper comes nearer than that of the server, whose plain model has W.

The adaptive attackers match what crossed the wire through the client step:

    server, eavesdropper   `upload`      Γ_c
    client                 `smoother`    Γ̂ of the others, from all rounds seen (`fedarena.defenses.dbcl.smoother`)

Biases and output layer cross the wire in clear. Clients get their update by difference, exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from fedarena.contracts.defense import Defense
from fedarena.contracts.estimand import GRADIENT, UPDATE
from fedarena.contracts.observation import Observation, Reading
from fedarena.contracts.plain_readings import per_step
from fedarena.contracts.simulators import (
    PlainGradient,
    ThroughProtocol,
    client_rounds,
    hidden_decay,
    images_behind,
    others_of,
    uploads_seen,
    without_own,
)
from fedarena.contracts.transcript import Seen
from fedarena.core.tensors import scale
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.dbcl.smoother import Move
from fedarena.defenses.dbcl.update_estimate import (
    PSEUDO_INVERSE,
    SMOOTHER,
    TRANSPOSE,
    difference,
    hidden_update,
    smoothed,
    unsketched,
)
from fedarena.defenses.dbcl.wire import DBCLWire


def readings(
    defense: Defense, wire: DBCLWire, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
) -> Sequence[Reading] | NotApplicable:
    """See `fedarena.contracts.defense.Defense.readings`."""
    if threat.party == "client":
        return _from_broadcasts(defense, wire, threat, seen, victims)
    observations = tuple(_from_upload(defense, wire, threat, seen[t]) for t in victims if t in seen)
    if not observations:
        return NotApplicable("none of the rounds attacked took place")
    return [Reading("upload" if threat.form == "adaptive" else "expanded", observations)]


# -- server and eavesdropper: uploads -------------------------------------------------------------------


def _from_upload(defense: Defense, wire: DBCLWire, threat: Threat, now: Seen) -> Observation:
    """One client's Γ, or the mean of a secure sum."""
    defense = defense.in_round(now.index)
    (clients, up), (sketched, sketches) = uploads_seen(now, threat), wire.open(now.down)
    gradient = per_step(defense, wire.expand(up, sketches), clients)
    params = now.params if now.params is not None else wire.expand(sketched, sketches)
    adaptive = threat.form == "adaptive"
    through, plain = ThroughProtocol.of(defense, now, clients), PlainGradient(defense.task, params, clients)
    return Observation(
        round=now.index,
        clients=clients,
        images=sum(images_behind(defense.task, c) for c in clients),
        target=up if adaptive else gradient,
        simulate=through if adaptive else plain,
        output_bias=defense.task.output_bias,
        estimate=wire.hidden(gradient),
        estimate_of=GRADIENT,
    )


# -- a client: consecutive broadcasts -------------------------------------------------------------------


def _from_broadcasts(
    defense: Defense, wire: DBCLWire, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
) -> Sequence[Reading] | NotApplicable:
    rounds = hidden_decay(defense) or client_rounds(defense, threat, seen, victims)
    if isinstance(rounds, NotApplicable):
        return rounds
    if threat.form == "paper":
        return [
            Reading(option, tuple(_through_model(defense, wire, threat, seen[t], seen[t + 1], option) for t in rounds))
            for option in (TRANSPOSE, PSEUDO_INVERSE)
        ]
    try:
        moves = smoothed(defense, wire, threat, seen, rounds)
    except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
        return NotApplicable(
            "the smoother's covariance is singular in double precision: hidden layers hardly moved in some rounds "
            "and far in others"
        )
    observations = [_through_protocol(defense, wire, threat, seen[t], seen[t + 1], moves[t]) for t in rounds]
    return [Reading(SMOOTHER, tuple(observations))]


def _through_model(
    defense: Defense, wire: DBCLWire, threat: Threat, now: Seen, after: Seen, option: str
) -> Observation:
    """Options I and II: Δ̂ as if it were the update, matched with the plain model at the estimated weights."""
    update, others = difference(wire, now, after, option), others_of(now, threat)
    assert now.own_up is not None
    own = wire.expand(now.own_up, wire.open(now.down)[1])
    defense = defense.in_round(now.index)
    total = scale(1 / defense.step_size, update)
    return Observation(
        round=now.index,
        clients=others,
        images=sum(images_behind(defense.task, c) for c in others),
        target=per_step(defense, without_own(total, own, defense.mean_weights, now, threat), others),
        simulate=PlainGradient(defense.task, unsketched(wire, now.down, option), others),
        output_bias=defense.task.output_bias,
        estimate=wire.hidden(update),
        estimate_of=UPDATE,
    )


def _through_protocol(
    defense: Defense, wire: DBCLWire, threat: Threat, now: Seen, after: Seen, moves: Mapping[str, Move]
) -> Observation:
    """The smoother: the others' mean Γ̂, matched through the client step."""
    others = others_of(now, threat)
    assert now.own_up is not None
    update = {
        name: moves[name].inside.to(w) if name in moves else w - after.down[name]
        for name, w in wire.open(now.down)[0].items()
    }
    defense = defense.in_round(now.index)
    total = scale(1 / defense.step_size, update)
    return Observation(
        round=now.index,
        clients=others,
        images=sum(images_behind(defense.task, c) for c in others),
        target=without_own(total, now.own_up, defense.mean_weights, now, threat),
        simulate=ThroughProtocol.of(defense, now, others),
        output_bias=defense.task.output_bias,
        estimate=hidden_update(wire, now, moves),
        estimate_of=UPDATE,
    )
