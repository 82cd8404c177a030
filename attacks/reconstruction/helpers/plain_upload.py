"""Uploads that are the plain gradient of a known model, as a party can tell by playing the protocol."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from fedarena.contracts.kept_entries import KeptEntries
from fedarena.contracts.observation import Observation
from fedarena.contracts.simulators import PlainGradient, ThroughProtocol
from fedarena.core.gradients import gradient
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, same_names, scale
from fedarena.problem.task import Task, targets

EXACT = 1e-4
"""Relative error up to which a play is a multiple of the plain gradient: that of float32."""


@dataclass(frozen=True)
class PlainUpload:
    """A gradient with the model that it was computed at.

    Attributes:
        task: public facts. params: the model's parameters. gradient: the loss's, of all parameters.
    """

    task: Task
    params: Tensors
    gradient: Tensors


def plain_upload(seen: Observation, rng: Rng) -> PlainUpload | str:
    """What was seen as the plain gradient of a model that the party knows, or why it is none.

    Behind a protocol it is one if a play of a random sample is a multiple of that sample's gradient at the broadcast:
    so is an update of one local step.
    """
    simulate = seen.simulate
    if isinstance(simulate, PlainGradient):
        if set(seen.target) != set(simulate.params):
            return "the gradient of some parameters was not seen"
        return PlainUpload(simulate.task, simulate.params, seen.target)
    other = "what was seen is not the plain gradient of a model that the party knows, nor a multiple of it"
    if isinstance(simulate, KeptEntries):
        return "the protocol leaves entries of the gradient out"
    if not isinstance(simulate, ThroughProtocol):
        return other
    task, params = simulate.defense.task, simulate.down
    if not set(seen.target) == set(params) == {name for name, _ in task.model.named_parameters()}:
        return other
    like = next(iter(params.values()))
    x = torch.rand(seen.images, *task.input_shape, generator=rng.torch()).to(like)
    y = targets(torch.zeros(seen.images, dtype=torch.int64, device=like.device), task.n_classes, like)
    found = gradient(task.loss, params, x, y)
    played, plain = flatten(same_names(simulate(x, y), list(found))), flatten(found)
    factor = float(played @ plain / plain.square().sum())
    if not factor or not float((played - factor * plain).norm()) <= EXACT * float(played.norm()):
        return other
    return PlainUpload(task, params, scale(1 / factor, seen.target))
