"""A party's estimate of DBCL's hidden weights from several sketches: the likeliest W, by the filter of the smoother.

One sketch W S leaves d_in − s numbers of a row undetermined. But W moves little from round to round, and every round
has another S, so that a few rounds together determine W. The step that a party expects of a round:

    client          its own share of the step, and the others' as large as its own (`update_estimate.expected_step`)
    eavesdropper    mean(Γ_c) Sᵀ, which it reads off the wire; with an aggregation rule a step of that size
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from fedarena.contracts.defense import Defense
from fedarena.contracts.observable import UNSEEN
from fedarena.contracts.observation import Disclosure
from fedarena.contracts.simulators import hidden_decay
from fedarena.contracts.transcript import Seen, weights
from fedarena.core.tensors import Tensors, weighted_mean
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.dbcl.sketch import Sketch
from fedarena.defenses.dbcl.smoother import Step, filtered
from fedarena.defenses.dbcl.update_estimate import expected_step, missed_rounds
from fedarena.defenses.dbcl.wire import DBCLWire


def likeliest(
    defense: Defense, wire: DBCLWire, threat: Threat, seen: Mapping[int, Seen], rounds: Sequence[int]
) -> list[Disclosure] | NotApplicable:
    """Ŵ of the given rounds, each from the sketches seen up to it; biases and output layer are in clear."""
    order, wanted = sorted(seen), [t for t in sorted(set(rounds)) if t in seen]
    if not wanted:
        return UNSEEN
    if why := hidden_decay(defense):
        return why
    opened = {t: wire.open(seen[t].down) for t in order}
    models = {t: dict(opened[t][0]) for t in wanted}
    for name, shape in wire.shapes.items():
        steps = [
            _step(defense, threat, seen[t], opened[t], name, missed)
            for t, missed in zip(order, missed_rounds(order), strict=True)
        ]
        try:
            estimates = filtered(steps, [order.index(t) for t in wanted])
        except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
            return NotApplicable("the filter's covariance is singular in double precision: hidden layers hardly moved")
        for t, w in zip(wanted, estimates, strict=True):
            models[t][name] = w.to(models[t][name]).reshape(shape)
    return [Disclosure(t, params) for t, params in models.items()]


def _step(
    defense: Defense, threat: Threat, now: Seen, opened: tuple[Tensors, dict[str, Sketch]], name: str, missed: int
) -> Step:
    """The step of one parameter that the party expects of one round; see the module's docstring."""
    params, sketches = opened
    if threat.party == "client":
        return expected_step(defense, threat, now, sketches[name], params, name, missed)
    sketch, w = sketches[name].to(torch.device("cpu")), params[name].double().cpu()
    schedule = defense.in_round(now.index).task.schedule
    step = schedule.step_size * _mean(defense, now, name).double().cpu()
    if schedule.server_optimizer != "sgd":  # moves every coordinate by about its learning rate, in and out of Sᵀ
        outside = schedule.step_size * (1 + missed) ** 0.5
        return Step(sketch=sketch, seen=w, own=step * 0, inside=0.0, outside=outside)
    size = float(step.square().mean().sqrt())
    if defense.why_not_mean():
        return Step(sketch=sketch, seen=w, own=step * 0, inside=size, outside=size * missed**0.5)
    return Step(sketch=sketch, seen=w, own=step, inside=0.0, outside=size * missed**0.5)


def _mean(defense: Defense, now: Seen, name: str) -> Tensor:
    """Γ, averaged over clients as the server does; if a rule takes no mean, of about the length of its result."""
    if now.mean is not None:
        return now.mean[name]
    assert now.ups is not None
    counted = torch.tensor([c in (now.averaged or now.participants) for c in now.participants])
    return weighted_mean({name: now.ups[name]}, weights(defense.mean_weights, now.participants) * counted)[name]
