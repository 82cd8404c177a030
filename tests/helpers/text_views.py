"""What a server sees of batches of notes, for attacks on texts."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from fedarena.contracts.observation import Observation
from fedarena.contracts.simulators import ThroughProtocol, as_batch
from fedarena.contracts.view import View
from fedarena.core.options import NoOptions
from fedarena.core.registry import find
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import Threat
from fedarena.datasets import load
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task


def text_view(
    batch: int = 1,
    noise: float = 0.0,
    told: bool = True,
    steps: int = 0,
    options: Mapping[str, str] = {},
    model: str = "transformer",
) -> tuple[View, list[tuple[Tensor, Tensor]]]:
    """One upload of a client with `batch` notes, after `steps` rounds of training by others.

    Args:
        noise: standard deviation of what is added to it. told: whether the observation says so.
        options: of the model.
    """
    data, card = load("clinic-notes"), find("model", model)
    architecture = card.load()(card.parse(options))
    shape = data.x_train.shape[1:]
    module = architecture.module(shape, data.n_classes)
    task = Task(
        module, input_shape=shape, n_classes=data.n_classes, sizes=(batch,), schedule=Schedule(batch_size=batch)
    )
    defense, params = FedAvg(NoOptions(), task), architecture.init(module, Rng(0).torch())
    inputs, labels = torch.from_numpy(data.x_train), torch.from_numpy(data.y_train)
    order = torch.randperm(len(data.x_train), generator=Rng(1).torch())

    def upload(some: Tensor) -> tuple[Tensors, Tensor, Tensor]:
        x, y = inputs[some].float(), labels[some]
        return defense.client(params, as_batch(task, x, F.one_hot(y, 6).float()), {}, {})[0], x, y

    for t in range(1, steps + 1):
        step = upload(order[t * batch : (t + 1) * batch])[0]
        params = {name: p - 0.3 * step[name] for name, p in params.items()}
    up, x, y = upload(order[:batch])
    generator = Rng(2).torch()
    up = {name: t + noise * torch.randn(t.shape, generator=generator) for name, t in up.items()}
    seen = Observation(
        0,
        clients=(0,),
        images=batch,
        target=up,
        simulate=ThroughProtocol(defense, params, (0,)),
        output_bias=task.output_bias,
        noise_std=noise if told else 0.0,
    )
    view = View(
        Threat("server", "adaptive"),
        reading="upload",
        input_shape=tuple(shape),
        n_classes=6,
        observations=(seen,),
        output_layer="out",
    )
    return view, [(x, y)]
