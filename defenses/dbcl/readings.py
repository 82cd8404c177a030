"""What each party makes of what it sees of DBCL.

The paper's attackers turn sketches into plain tensors and go on as against FedAvg:

    server, eavesdropper   `expanded`    Γ_c Sᵀ for the gradient
    client                 `option-I`    Δ̂ = W̃_t S_tᵀ − W̃_{t+1} S_{t+1}ᵀ                (Section 5.1)
                           `option-II`   Δ̂ = W̃_t S_t† − W̃_{t+1} S_{t+1}†               (Section 6.3)

The eavesdropper, who lacks W, takes W̃ Sᵀ for the plain model, which happens to be the network that the client
ran: its paper form comes nearer than the server's, whose plain model is the one with W.

The adaptive ones match what crossed the wire through the client step:

    server, eavesdropper   `upload`      Γ_c
    client                 `smoother`    Γ̂ of the others, from all rounds seen (`fedarena.defenses.dbcl.smoother`)

Biases and output layer cross the wire in clear; clients get their update by difference, exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import torch

from fedarena.contracts.estimand import GRADIENT, UPDATE
from fedarena.contracts.observation import Observation, Reading
from fedarena.contracts.simulators import (
    PlainGradient,
    ThroughProtocol,
    images_behind,
    others_of,
    own_share,
    uploads_seen,
    without_own,
)
from fedarena.contracts.transcript import Seen
from fedarena.core.tensors import Tensors, combine, scale
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.dbcl.sketch import Sketch
from fedarena.defenses.dbcl.smoother import Move, Step, smooth

if TYPE_CHECKING:
    from fedarena.defenses.dbcl.protocol import DBCL

TRANSPOSE, PSEUDO_INVERSE, SMOOTHER = "option-I", "option-II", "smoother"


def readings(
    defense: DBCL, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
) -> Sequence[Reading] | NotApplicable:
    """See `fedarena.contracts.defense.Defense.readings`."""
    if threat.party == "client":
        return _from_broadcasts(defense, threat, seen, victims)
    observations = tuple(_from_upload(defense, threat, seen[t]) for t in victims if t in seen)
    if not observations:
        return NotApplicable("none of the rounds attacked took place")
    return [Reading("upload" if threat.form == "adaptive" else "expanded", observations)]


# -- server and eavesdropper: uploads -------------------------------------------------------------------


def _from_upload(defense: DBCL, threat: Threat, now: Seen) -> Observation:
    (clients, up), (sketched, sketches) = uploads_seen(now, threat), defense.open(now.down)
    gradient = _per_step(defense, defense.expand(up, sketches), clients)
    params = now.params if now.params is not None else defense.expand(sketched, sketches)
    adaptive = threat.form == "adaptive"
    through, plain = ThroughProtocol(defense, now.down, clients), PlainGradient(defense.task, params, clients)
    return Observation(
        round=now.index,
        clients=clients,
        images=sum(images_behind(defense.task, c) for c in clients),
        target=up if adaptive else gradient,
        simulate=through if adaptive else plain,
        output_bias=defense.task.output_bias,
        estimate=_hidden(defense, gradient),
        estimate_of=GRADIENT,
    )


# -- a client: consecutive broadcasts -------------------------------------------------------------------


def _from_broadcasts(
    defense: DBCL, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
) -> Sequence[Reading] | NotApplicable:
    if defense.task.schedule.server_optimizer != "sgd":
        return NotApplicable(
            "the server's Adam steps do not show the clients' mean upload, and this attack does not invert Adam"
        )
    if why := defense.why_not_mean():
        return NotApplicable(why)
    rounds = [t for t in victims if t in seen and t + 1 in seen]
    if not rounds:
        return NotApplicable("the malicious client was not sampled in two consecutive rounds that are attacked")
    rounds = [t for t in rounds if others_of(seen[t], threat)]
    if not rounds:
        return NotApplicable("no other client's upload counted in the rounds attacked")
    if threat.form == "adaptive":
        try:
            moves = smoothed(defense, threat, seen, rounds)
        except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
            return NotApplicable(
                "the smoother's covariance is singular in double precision: hidden layers hardly moved in some rounds "
                "and far in others"
            )
        found = tuple(_through_protocol(defense, threat, seen, t, moves[t]) for t in rounds)
        return [Reading(SMOOTHER, found)]
    options = (TRANSPOSE, PSEUDO_INVERSE)
    return [Reading(o, tuple(_through_model(defense, threat, seen, t, o) for t in rounds)) for o in options]


def _through_model(defense: DBCL, threat: Threat, seen: Mapping[int, Seen], t: int, option: str) -> Observation:
    """Options I and II: Δ̂ as if it were the update, matched with the plain model at the estimated weights."""
    now, update = seen[t], difference(defense, seen[t], seen[t + 1], option)
    others = others_of(now, threat)
    assert now.own_up is not None
    own = defense.expand(now.own_up, defense.open(now.down)[1])
    total = scale(1 / defense.task.schedule.step_size, update)
    target = _per_step(defense, without_own(total, own, defense.mean_weights, now, threat), others)
    params = unsketched(defense, now.down, option)
    return Observation(
        round=t,
        clients=others,
        images=sum(images_behind(defense.task, c) for c in others),
        target=target,
        simulate=PlainGradient(defense.task, params, others),
        output_bias=defense.task.output_bias,
        estimate=_hidden(defense, update),
        estimate_of=UPDATE,
    )


def _through_protocol(
    defense: DBCL, threat: Threat, seen: Mapping[int, Seen], t: int, moves: Mapping[str, Move]
) -> Observation:
    """The smoother: the others' mean Γ̂, matched through the client step."""
    now, after, others = seen[t], seen[t + 1], others_of(seen[t], threat)
    assert now.own_up is not None
    update = {
        name: moves[name].inside.to(w) if name in moves else w - after.down[name]
        for name, w in defense.open(now.down)[0].items()
    }
    total = scale(1 / defense.task.schedule.step_size, update)
    return Observation(
        round=t,
        clients=others,
        images=sum(images_behind(defense.task, c) for c in others),
        target=without_own(total, now.own_up, defense.mean_weights, now, threat),
        simulate=ThroughProtocol(defense, now.down, others),
        output_bias=defense.task.output_bias,
        estimate=hidden_update(defense, now, moves),
        estimate_of=UPDATE,
    )


# -- estimates of the hidden update ---------------------------------------------------------------------


def difference(defense: DBCL, now: Seen, after: Seen, option: str) -> Tensors:
    """Δ̂ of options I and II for sketched parameters, the exact difference for the others; plain shapes."""
    return combine(1.0, unsketched(defense, now.down, option), -1.0, unsketched(defense, after.down, option))


def unsketched(defense: DBCL, down: Tensors, option: str) -> Tensors:
    """The plain model's parameters as far as a broadcast tells: W̃ Sᵀ (option I) or W̃ S† (option II).

    S† = (SᵀS)⁻¹ Sᵀ; a bucket without coordinates adds nothing.
    """
    params, sketches = defense.open(down)
    if option == PSEUDO_INVERSE:
        params = {n: w / sketches[n].counts().clamp(min=1).to(w) if n in sketches else w for n, w in params.items()}
    return defense.expand(params, sketches)


def smoothed(
    defense: DBCL, threat: Threat, seen: Mapping[int, Seen], rounds: Sequence[int]
) -> dict[int, dict[str, Move]]:
    """The smoother's estimates of the sketched parameters' moves after the given rounds (t and t + 1 both seen).

    The others' step is expected to be as large as the attacker's own upload of that round makes it, and so
    is every step of a round that the attacker missed. Under a server's Adam, which leaves the row space of
    Sᵀ and whose step is about its learning rate in every coordinate, all is expected outside, nothing known.
    """
    order = sorted(seen)
    position = {t: k for k, t in enumerate(order)}
    opened = [defense.open(seen[t].down) for t in order]
    found: dict[int, dict[str, Move]] = {t: {} for t in rounds}
    for name in defense.shapes:
        steps = [
            step_after(defense, threat, seen[t], sketches[name], params, name, missed)
            for t, (params, sketches), missed in zip(order, opened, gaps(order), strict=True)
        ]
        moves = smooth(steps, [position[t] for t in rounds])
        for t, move in zip(sorted(set(rounds)), moves, strict=True):
            found[t][name] = move
    return found


def hidden_update(defense: DBCL, now: Seen, moves: Mapping[str, Move]) -> Tensors:
    """Û Sᵀ + V̂ in the plain model's shapes, for the sketched parameters."""
    params, sketches = defense.open(now.down)
    found = {name: sketches[name].to(m.inside.device).expand(m.inside) + m.outside for name, m in moves.items()}
    return {name: u.to(params[name]).reshape(defense.shapes[name]) for name, u in found.items()}


def step_after(
    defense: DBCL, threat: Threat, now: Seen, sketch: Sketch, params: Tensors, name: str, missed: int
) -> Step:
    """What a client knows of one parameter in one round, and expects of its move; see `smoothed`."""
    schedule = defense.task.schedule
    seen, sketch = params[name].double().cpu(), sketch.to(torch.device("cpu"))
    assert now.own_up is not None
    own = now.own_up[name].double().cpu()
    if schedule.server_optimizer != "sgd":
        return Step(sketch, seen, own * 0, 0.0, schedule.step_size * (1 + missed) ** 0.5)
    share = own_share(defense.mean_weights, now, threat)
    size = float(own.square().mean().sqrt()) * schedule.step_size
    return Step(sketch, seen, schedule.step_size * share * own, (1 - share) * size, size * missed**0.5)


def gaps(order: Sequence[int]) -> list[int]:
    """How many rounds were missed after each round seen (0 after the last)."""
    return [b - a - 1 for a, b in pairwise(order)] + [0]


def _hidden(defense: DBCL, tensors: Tensors) -> Tensors:
    """The sketched parameters alone."""
    return {name: tensors[name] for name in defense.shapes}


def _per_step(defense: DBCL, upload: Tensors, clients: Sequence[int]) -> Tensors:
    """The plain gradient that an upload stands for: under FedAvg, the update per step and unit of learning rate."""
    schedule = defense.task.schedule
    if schedule.fedsgd:
        return upload
    steps = sum(schedule.steps(defense.task.sizes[c]) for c in clients) / len(clients)
    return scale(1 / (schedule.lr * steps), upload)
