"""What a party makes of DBCL's hidden weights from several sketches: the likeliest W, by the filter of the smoother.

One sketch W S leaves d_in − s numbers a row open. But W moves little from round to round, and every round sketches it
by another S, so that a few rounds close what one leaves open. What a round is expected to move W by:

    client          its own share of the step, and the others' as large as its own (`fedarena.defenses.dbcl.readings`)
    eavesdropper    mean(Γ_c) Sᵀ, which it reads off the wire; with an aggregation rule a step of that size
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fedarena.contracts.observable import UNSEEN
from fedarena.contracts.observation import Disclosure
from fedarena.contracts.transcript import Seen, weights
from fedarena.core.tensors import Tensors, weighted_mean
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.dbcl.readings import gaps, step_after
from fedarena.defenses.dbcl.sketch import Sketch
from fedarena.defenses.dbcl.smoother import Step, filtered

if TYPE_CHECKING:
    from fedarena.defenses.dbcl.protocol import DBCL


def likeliest(
    defense: DBCL, threat: Threat, seen: Mapping[int, Seen], rounds: Sequence[int]
) -> list[Disclosure] | NotApplicable:
    """Ŵ of the given rounds, each from the sketches seen up to it; biases and output layer are in clear."""
    order, wanted = sorted(seen), [t for t in sorted(set(rounds)) if t in seen]
    if not wanted:
        return UNSEEN
    opened = {t: defense.open(seen[t].down) for t in order}
    models = {t: dict(opened[t][0]) for t in wanted}
    for name, shape in defense.shapes.items():
        steps = [
            _step(defense, threat, seen[t], opened[t], name, missed)
            for t, missed in zip(order, gaps(order), strict=True)
        ]
        try:
            found = filtered(steps, [order.index(t) for t in wanted])
        except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
            return NotApplicable("the filter's covariance is singular in double precision: hidden layers hardly moved")
        for t, w in zip(wanted, found, strict=True):
            models[t][name] = w.to(models[t][name]).reshape(shape)
    return [Disclosure(t, params) for t, params in models.items()]


def _step(
    defense: DBCL, threat: Threat, now: Seen, opened: tuple[Tensors, dict[str, Sketch]], name: str, missed: int
) -> Step:
    params, sketches = opened
    if threat.party == "client":
        return step_after(defense, threat, now, sketches[name], params, name, missed)
    sketch, w = sketches[name].to(torch.device("cpu")), params[name].double().cpu()
    schedule = defense.task.schedule
    step = schedule.step_size * _mean(defense, now, name).double().cpu()
    if schedule.server_optimizer != "sgd":  # moves every coordinate by about its learning rate, in and out of Sᵀ
        return Step(sketch, w, step * 0, 0.0, schedule.step_size * (1 + missed) ** 0.5)
    size = float(step.square().mean().sqrt())
    if defense.why_not_mean():
        return Step(sketch, w, step * 0, size, size * missed**0.5)
    return Step(sketch, w, step, 0.0, size * missed**0.5)


def _mean(defense: DBCL, now: Seen, name: str) -> Tensor:
    """Γ, averaged over clients as the server does; where a rule gives no mean, about as long as what it gives."""
    if now.mean is not None:
        return now.mean[name]
    assert now.ups is not None
    counted = torch.tensor([c in (now.averaged or now.participants) for c in now.participants])
    return weighted_mean({name: now.ups[name]}, weights(defense.mean_weights, now.participants) * counted)[name]
