"""What a server sees of batches of digits, for attacks that read a dense first layer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from fedarena.contracts.defense import Defense, State
from fedarena.contracts.observation import Observation
from fedarena.contracts.simulators import PlainGradient, ThroughProtocol, as_batch
from fedarena.contracts.view import Population, View
from fedarena.core.options import NoOptions
from fedarena.core.registry import find
from fedarena.core.rng import Rng
from fedarena.core.threat import Threat
from fedarena.defenses.dbcl.card import Options as DBCLOptions
from fedarena.defenses.dbcl.protocol import DBCL
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task
from helpers.digit_views import digits


def make_view(
    cell: str = "fedavg",
    victims: int = 4,
    batch: int = 1,
    model: str = "mlp",
    schedule: Schedule | None = None,
    **options: Any,
) -> tuple[View, list[tuple[Tensor, Tensor]]]:
    """What the server sees of digits, at initial parameters; `dbcl/paper` is Γ Sᵀ matched with the plain model."""
    x, y = digits()
    schedule = schedule or Schedule(batch_size=batch)
    architecture = find("model", model).load()(find("model", model).parse(options))
    module = architecture.module((1, 8, 8), 10)
    task = Task(module, input_shape=(1, 8, 8), n_classes=10, sizes=(batch,), schedule=schedule)
    defense: Defense = FedAvg(NoOptions(), task) if cell == "fedavg" else DBCL(DBCLOptions(), task)
    state = State(architecture.init(module, Rng(0).child("init").torch()))
    order = torch.randperm(len(x), generator=Rng(0).child("victims").torch())
    seen, truths = [], []
    for t in range(victims):
        i = order[t * batch : (t + 1) * batch]
        down = defense.broadcast(state, Rng(0).child(t)).down
        up, _ = defense.client(down, as_batch(task, x[i], F.one_hot(y[i], 10).float()), {}, {})
        target, simulate = up, ThroughProtocol(defense, down, (0,))
        if cell == "dbcl/paper":
            assert isinstance(defense, DBCL)
            target, simulate = (
                defense.wire.expand(up, defense.wire.open(down)[1]),
                PlainGradient(task, state.params, (0,)),
            )
        seen.append(
            Observation(t, clients=(0,), images=batch, target=target, simulate=simulate, output_bias=task.output_bias)
        )
        truths.append((x[i], y[i]))
    own = Population(x[order[-600:]], y[order[-600:]])
    view = View(
        Threat("server", "adaptive"),
        reading="upload",
        input_shape=(1, 8, 8),
        n_classes=10,
        observations=tuple(seen),
        output_layer="out",
    )
    return replace(view, population=own), truths
