"""What the server's own step makes of one upload: a reading that no defense has to declare.

A server runs the protocol's step on the uploads of a round. It may as well run it on one upload alone, in the place of
all, and without its aggregation rule. Whatever clients put on their gradients and the step takes off again, such as a
pad whose key stands in the message, is then gone:

    g = direction(u_v, …, u_v)        matched with the plain gradient of a candidate batch

The reading is left out where it shows nothing more than another one: where g is a multiple of the upload itself or of
an estimate that the defense gives, or a linear map of fewer numbers than the model has, as of a sketch. It is left out,
too, where the step does not depend on the upload, is mostly what the server draws, or sums securely. With client
momentum g holds the gradients of earlier rounds, too.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

from fedarena.contracts.control import relative_error
from fedarena.contracts.defense import Broadcast, Cohort, Defense, State
from fedarena.contracts.observation import Observation, Reading
from fedarena.contracts.plain_readings import per_step
from fedarena.contracts.simulators import PlainGradient, images_behind, upload_of, victim
from fedarena.contracts.transcript import Seen, weights
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, combine, finite, flatten, same_names, scale, shapes_of, stack
from fedarena.core.threat import Threat

NAME = "server step"
PARALLEL = 0.99
"""The least |cosine| at which two gradients show the same."""
SAME = 1e-6
"""The relative error up to which two steps are the same."""
LINEAR = 1e-2
"""The relative error up to which the step of a sum is the sum of the steps."""


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
    if threat.party != "server" or threat.form != "adaptive":
        return []
    alone = copy.copy(defense)
    alone.rule = None
    found, new = [], False
    for t in (t for t in victims if t in seen):
        now, protocol = seen[t], alone.in_round(t)
        if now.ups is None or now.params is None:
            return []
        client = victim(now, threat)
        up = upload_of(now, client)
        if (step := _step(protocol, now, up)) is None:
            return []
        shown = [_known(o) for r in declared for o in r.observations if o.round == t and o.clients == (client,)]
        if not any(_parallel(step, one) for one in [up, *shown]):
            if not _tells(protocol, now, client, step):
                return []
            new = True
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


def _step(defense: Defense, now: Seen, up: Tensors, draw: int = 0) -> Tensors | None:
    """The server's step on one upload in the place of all, by parameter; None where there is none.

    Args:
        draw: the number of the stream from which the server draws.
    """
    assert now.params is not None
    state = State(params=now.params, round=now.index, extra=now.extra or {}, auxiliary=now.own_data)
    shares = weights(defense.task.sizes, now.participants).to(next(iter(up.values())).device)
    cohort, sent = Cohort(now.participants, shares), Broadcast(now.down, now.secret or {})
    try:
        step = defense.direction(state, sent, stack([up] * len(shares)), cohort, Rng(draw)).step
    except Exception:  # a step of third parties that cannot be taken so
        return None
    model = {name: list(p.shape) for name, p in defense.task.model.named_parameters()}
    if not step.keys() >= model.keys() or shapes_of(same_names(step, tuple(model))) != model:
        return None
    return same_names(step, tuple(model)) if finite(step) else None


def _tells(defense: Defense, now: Seen, client: int, step: Tensors) -> bool:
    """Whether the step depends on the upload, in more than a linear map of few numbers, and hardly on chance."""
    up, again = upload_of(now, client), _step(defense, now, upload_of(now, client), draw=1)
    if again is None or not _parallel(step, again):
        return False
    another = next((c for c in now.participants if c != client), None)
    second = scale(0.0, up) if another is None else upload_of(now, another)
    other = _step(defense, now, second)
    if other is None or relative_error(step, other) <= SAME:
        return False
    if len(flatten(up)) >= len(flatten(step)):
        return True
    both = _step(defense, now, combine(1.0, up, 1.0, second))
    return both is None or relative_error(combine(1.0, both, -1.0, other), step) > LINEAR


def _parallel(step: Tensors, shown: Tensors) -> bool:
    """Whether a step is a multiple of what is shown."""
    if not all(name in shown and shown[name].shape == t.shape for name, t in step.items()):
        return False
    x, y = (flatten(same_names(t, tuple(step))).double() for t in (step, shown))
    both = float(x.norm() * y.norm())
    return abs(float(x @ y)) >= PARALLEL * both if both else not x.any()
