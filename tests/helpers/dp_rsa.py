"""DP-RSA driven by hand on a small federation."""

from __future__ import annotations

from fedarena.contracts.defense import State
from fedarena.defenses.dp_rsa.card import Options
from fedarena.defenses.dp_rsa.protocol import DPRSA
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task
from helpers.baffle import SIZES
from helpers.dbcl import mlp, parameters


def make(model=None, shape=(12,), sizes=SIZES, schedule=None, rule=None, **options):
    times = Schedule(**{"rounds": 4, "batch_size": 4, "lr": 0.1, **(schedule or {})})
    task = Task(model or mlp(), input_shape=shape, n_classes=3, sizes=sizes, schedule=times)
    return DPRSA(Options(**options), task, rule)


def start(defense, seed=0):
    return State(parameters(defense.task.model, seed))
