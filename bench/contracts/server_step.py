"""What the server's own step makes of one upload: a reading that no defense has to declare.

A server runs the protocol's step on the uploads of a round. It may as well run it on one upload alone, without its
aggregation rule. Whatever clients put on their gradients and the step takes off again, such as a pad whose key stands
in the message, is then gone:

    g = direction({u_v})        matched with the plain gradient of a candidate batch

The reading is left out where it shows nothing more than another one: where g is a multiple of the upload itself or of
an estimate that the defense gives. It is left out, too, where the step does not depend on the upload, is not defined
for a single one, or sums securely; and with client momentum, whose steps hold the gradients of earlier rounds.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

import torch

from fedarena.contracts.control import relative_error
from fedarena.contracts.defense import Broadcast, Cohort, Defense, State
from fedarena.contracts.observation import Observation, Reading
from fedarena.contracts.plain_readings import per_step
from fedarena.contracts.simulators import PlainGradient, images_behind, upload_of, victim
from fedarena.contracts.transcript import Seen, weights
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, finite, flatten, same_names, shapes_of, stack
from fedarena.core.threat import Threat

NAME = "server step"
PARALLEL = 0.99
"""The least |cosine| at which two gradients show the same."""
SAME = 1e-6
"""The relative error up to which two steps are the same."""


def readings(
    defense: Defense,
    threat: Threat,
    seen: Mapping[int, Seen],
    victims: Sequence[int],
    declared: Sequence[Reading],
) -> Sequence[Reading]:
    """The reading of the server's step, if it shows something else than the readings that the defense declares.

    Args:
        seen, victims: see `Defense.readings`.
        declared: the defense's readings.
    """
    if threat.party != "server" or threat.form != "adaptive" or defense.task.schedule.client_momentum:
        return []
    alone = copy.copy(defense)
    alone.rule = None
    found, new = [], False
    for t in (t for t in victims if t in seen):
        now, protocol = seen[t], alone.in_round(t)
        if now.ups is None or now.params is None:
            return []
        client = victim(now, threat)
        step = _step(protocol, now, client)
        if step is None:
            return []
        shown = [_known(o) for r in declared for o in r.observations if o.round == t and o.clients == (client,)]
        new = new or not any(_parallel(step, one) for one in [upload_of(now, client), *shown])
        found.append(_observation(protocol, now, client, step))
    return [Reading(NAME, tuple(found))] if new else []


def _known(o: Observation) -> Tensors:
    return o.target if o.estimate is None else o.estimate


def _observation(defense: Defense, now: Seen, client: int, step: Tensors) -> Observation:
    task = defense.task
    assert now.params is not None
    gradient = per_step(defense, step, (client,))
    return Observation(
        round=now.index,
        clients=(client,),
        images=images_behind(task, client),
        target=gradient,
        simulate=PlainGradient(task, now.params, (client,)),
        output_bias=task.output_bias,
        estimate=gradient,
    )


def _step(defense: Defense, now: Seen, client: int) -> Tensors | None:
    """The server's step on a client's upload alone; None where it has none that tells of the upload."""
    up = upload_of(now, client)
    none = {name: torch.zeros_like(t) for name, t in up.items()}
    try:
        step, other = (_played(defense, now, client, one) for one in (up, none))
    except Exception:  # a step of third parties that cannot be taken for one client
        return None
    model = {name: list(p.shape) for name, p in defense.task.model.named_parameters()}
    if not step.keys() >= model.keys() or shapes_of(same_names(step, tuple(model))) != model:
        return None
    step = same_names(step, tuple(model))
    return step if finite(step) and relative_error(step, same_names(other, tuple(model))) > SAME else None


def _played(defense: Defense, now: Seen, client: int, up: Tensors) -> Tensors:
    assert now.params is not None
    state = State(params=now.params, round=now.index, extra=now.extra or {}, auxiliary=now.own_data)
    cohort = Cohort((client,), weights(defense.task.sizes, (client,)).to(next(iter(up.values())).device))
    sent = Broadcast(now.down, now.secret or {})
    return defense.direction(state, sent, stack([up]), cohort, Rng(now.index)).step


def _parallel(a: Tensors, b: Tensors) -> bool:
    """Whether the tensors that two have in common are multiples of each other, and there are some."""
    names = [name for name in a if name in b and a[name].shape == b[name].shape]
    if not names:
        return False
    x, y = (flatten(same_names(t, tuple(names))).double() for t in (a, b))
    both = float(x.norm() * y.norm())
    return abs(float(x @ y)) >= PARALLEL * both if both else not x.any()
