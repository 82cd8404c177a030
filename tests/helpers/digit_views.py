"""Views of digits at initial parameters, for the attacks that search for images."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor
from torch.nn import functional as F

from fedarena.contracts.defense import Defense, State
from fedarena.contracts.inference import Guess
from fedarena.contracts.observation import Observation
from fedarena.contracts.simulators import PlainGradient, ThroughProtocol, as_batch
from fedarena.contracts.view import View
from fedarena.core.options import NoOptions
from fedarena.core.rng import Rng
from fedarena.core.threat import Threat
from fedarena.defenses.dbcl.card import Options as DBCLOptions
from fedarena.defenses.dbcl.protocol import DBCL
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.goals.metrics import reconstruction as judge
from fedarena.goals.metrics.identification import Owned, draw_decoys
from fedarena.models.cards.lenet_dlg import Options as LeNetOptions
from fedarena.models.lenet_dlg import DlgLeNet
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task
from helpers.victims import StoredSamples

CLASSES = 10
THRESHOLD = 0.9
NONE = torch.empty(0, dtype=torch.int64)


@cache
def digits() -> tuple[Tensor, Tensor]:
    from sklearn.datasets import load_digits

    data = load_digits()
    return torch.tensor(data.images, dtype=torch.float32)[:, None] / 16, torch.tensor(data.target)


def make_view(
    cell: str, victims: int = 3, batch: int = 1, seed: int = 0, schedule: Schedule | None = None
) -> tuple[View, list[tuple[Tensor, Tensor]]]:
    """What the server sees: `fedavg`, or `dbcl` matched through the protocol (adaptive) or as Γ Sᵀ (paper)."""
    x, y = digits()
    schedule = schedule or Schedule(batch_size=batch)
    model = DlgLeNet(LeNetOptions())
    module = model.module((1, 8, 8), CLASSES)
    task = Task(module, input_shape=(1, 8, 8), n_classes=CLASSES, sizes=(batch,), schedule=schedule)
    defense: Defense = FedAvg(NoOptions(), task) if cell == "fedavg" else DBCL(DBCLOptions(), task)
    state = State(model.init(module, Rng(seed).child("init").torch()))
    order = torch.randperm(len(x), generator=Rng(seed).child("victims").torch())
    observations, truths = [], []
    for t in range(victims):
        i = order[t * batch : (t + 1) * batch]
        down = defense.broadcast(state, Rng(seed).child(t)).down
        up, _ = defense.client(down, as_batch(task, x[i], F.one_hot(y[i], CLASSES).float()), {}, {})
        target, simulate = up, ThroughProtocol(defense, down, (0,))
        if cell == "dbcl/paper":
            assert isinstance(defense, DBCL)
            target = defense.wire.expand(up, defense.wire.open(down)[1])
            simulate = PlainGradient(task, state.params, (0,))
        observations.append(
            Observation(t, clients=(0,), images=batch, target=target, simulate=simulate, output_bias=task.output_bias)
        )
        truths.append((x[i], y[i]))
    return View(
        Threat("server", "adaptive"),
        reading="upload",
        input_shape=(1, 8, 8),
        n_classes=CLASSES,
        observations=tuple(observations),
    ), truths


def score(guess: Guess, truths: list[tuple[Tensor, Tensor]]) -> dict[str, float]:
    """The judge's metrics, with 99 other digits for every victim."""
    x, y = digits()
    samples = StoredSamples(x, y, x[:0], y[:0])
    decoys = draw_decoys(truths, samples, Owned(NONE, NONE), Rng(0))
    among = judge.Victims(tuple(truths), decoys, THRESHOLD)
    return judge.reconstruction_metrics(guess, among) | judge.prior_metrics(among, samples)
