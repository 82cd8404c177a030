"""A client's estimates of DBCL's hidden update W_t − W_{t+1}: options I and II of the paper, and the smoother.

option I    W̃_t S_tᵀ − W̃_{t+1} S_{t+1}ᵀ                (Section 5.1)
option II   W̃_t S_t† − W̃_{t+1} S_{t+1}†                (Section 6.3),  S† = (SᵀS)⁻¹ Sᵀ
smoother    the likeliest update, given the sketches of all rounds seen (`fedarena.defenses.dbcl.smoother`)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch

from fedarena.contracts.defense import Defense
from fedarena.contracts.simulators import own_share
from fedarena.contracts.transcript import Seen
from fedarena.core.tensors import Tensors, combine
from fedarena.core.threat import Threat
from fedarena.defenses.dbcl.sketch import Sketch
from fedarena.defenses.dbcl.smoother import Move, Step, smooth
from fedarena.defenses.dbcl.wire import DBCLWire

TRANSPOSE, PSEUDO_INVERSE, SMOOTHER = "option-I", "option-II", "smoother"


def difference(wire: DBCLWire, now: Seen, after: Seen, option: str) -> Tensors:
    """The update by option I or II for sketched parameters, the exact difference for the others; plain shapes."""
    return combine(1.0, unsketched(wire, now.down, option), -1.0, unsketched(wire, after.down, option))


def unsketched(wire: DBCLWire, down: Tensors, option: str) -> Tensors:
    """The plain model's parameters as one broadcast shows them: W̃ Sᵀ (option I) or W̃ S† (option II)."""
    params, sketches = wire.open(down)
    if option == TRANSPOSE:
        return wire.expand(params, sketches)
    inverted = {n: sketch.pseudo_inverse(params[n]).reshape(wire.shapes[n]) for n, sketch in sketches.items()}
    return params | inverted


def smoothed(
    defense: Defense, wire: DBCLWire, threat: Threat, seen: Mapping[int, Seen], rounds: Sequence[int]
) -> dict[int, dict[str, Move]]:
    """The smoother's estimates of how the sketched parameters move after the given rounds (t and t + 1 both seen).

    The client expects the others' step to be as large as its own upload of that round, and the same of every round that
    it missed. With the server's Adam it knows nothing about the step, which leaves the row space of Sᵀ and moves every
    coordinate by about the learning rate.

    Returns:
        The moves by round and by parameter.
    """
    order = sorted(seen)
    position = {t: k for k, t in enumerate(order)}
    opened = [wire.open(seen[t].down) for t in order]
    estimates: dict[int, dict[str, Move]] = {t: {} for t in rounds}
    for name in wire.shapes:
        steps = [
            expected_step(defense, threat, seen[t], sketches[name], params, name, missed)
            for t, (params, sketches), missed in zip(order, opened, missed_rounds(order), strict=True)
        ]
        moves = smooth(steps, [position[t] for t in rounds])
        for t, move in zip(sorted(set(rounds)), moves, strict=True):
            estimates[t][name] = move
    return estimates


def hidden_update(wire: DBCLWire, now: Seen, moves: Mapping[str, Move]) -> Tensors:
    """Û Sᵀ + V̂ in the plain model's shapes, for the sketched parameters."""
    params, sketches = wire.open(now.down)
    updates = {name: sketches[name].to(m.inside.device).expand(m.inside) + m.outside for name, m in moves.items()}
    return {name: u.to(params[name]).reshape(wire.shapes[name]) for name, u in updates.items()}


def expected_step(
    defense: Defense, threat: Threat, now: Seen, sketch: Sketch, params: Tensors, name: str, missed: int
) -> Step:
    """What a client knows of one parameter in one round, and the step that it expects; see `smoothed`.

    Args:
        defense: the protocol. threat: the client. now: the round.
        sketch: S of the parameter. params: W̃ of all. name: the parameter's.
        missed: how many rounds the client missed after this one.
    """
    schedule = defense.in_round(now.index).task.schedule
    seen, sketch = params[name].double().cpu(), sketch.to(torch.device("cpu"))
    assert now.own_up is not None
    own = now.own_up[name].double().cpu()
    if schedule.server_optimizer != "sgd":
        outside = schedule.step_size * (1 + missed) ** 0.5
        return Step(sketch=sketch, seen=seen, own=own * 0, inside=0.0, outside=outside)
    share = own_share(defense.mean_weights, now, threat)
    size = float(own.square().mean().sqrt()) * schedule.step_size
    return Step(
        sketch=sketch,
        seen=seen,
        own=schedule.step_size * share * own,
        inside=(1 - share) * size,
        outside=size * missed**0.5,
    )


def missed_rounds(order: Sequence[int]) -> list[int]:
    """How many rounds were missed after each round seen (0 after the last)."""
    return [b - a - 1 for a, b in pairwise(order)] + [0]
