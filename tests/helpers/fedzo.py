"""FedZO driven by hand on a small federation."""

from __future__ import annotations

from fedarena.contracts.defense import State
from fedarena.defenses.fedzo.card import Options
from fedarena.defenses.fedzo.protocol import FedZO
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task
from helpers.baffle import SIZES
from helpers.dbcl import mlp, parameters


def make(model=None, shape=(12,), sizes=SIZES, schedule=None, **options):
    times = Schedule(**{"rounds": 4, "batch_size": 4, "lr": 0.1, **(schedule or {})})
    return FedZO(Options(**options), Task(model or mlp(), input_shape=shape, n_classes=3, sizes=sizes, schedule=times))


def start(defense, seed=0):
    return State(parameters(defense.task.model, seed))
