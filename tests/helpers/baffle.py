"""BAFFLE driven by hand: a small federation, one round at a time."""

from __future__ import annotations

import torch

from fedarena.contracts.defense import Cohort, State
from fedarena.contracts.transcript import Round, weights
from fedarena.core.rng import Rng
from fedarena.defenses.baffle.card import Options
from fedarena.defenses.baffle.protocol import Baffle
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task
from helpers.dbcl import mlp, parameters, samples

SIZES = (20, 30, 50)


def make(model=None, shape=(12,), sizes=SIZES, schedule=None, rule=None, **options):
    times = Schedule(**{"rounds": 4, "batch_size": 4, "lr": 0.1, **(schedule or {})})
    return Baffle(
        Options(**options), Task(model or mlp(), input_shape=shape, n_classes=3, sizes=sizes, schedule=times), rule
    )


def drawn(defense, seed=0):
    """One client's work of a round."""
    task = defense.task
    return samples(task.input_shape, task.schedule, min(task.sizes), 3, Rng(seed).torch())


def cosine(a, b):
    return float(torch.nn.functional.cosine_similarity(a, b, dim=0))


def start(defense, seed=0):
    return State(parameters(defense.task.model, seed))


def one_round(defense, state, t=0, memories=None):
    """(down, batches, ups, memories, next state) of a round in which all clients take part."""
    sent = defense.broadcast(state, Rng(t).child("broadcast"))
    batches = [drawn(defense, 10 * t + c) for c in range(len(defense.task.sizes))]
    noises = [defense.draw(Rng(t).child("noise", c)) for c in range(len(batches))]
    ups, after = defense.clients(sent.down, batches, memories or [{}] * len(batches), noises)
    cohort = Cohort(tuple(range(len(batches))), weights(defense.task.sizes, range(len(batches))))
    return sent, batches, ups, after, defense.aggregate(state, sent, ups, cohort, Rng(t).child("aggregate"))


def watched(defense, rounds=2, state=None):
    """A few rounds from a state, written down."""
    state, memories, found = state or start(defense), [{}] * len(defense.task.sizes), []
    for t in range(rounds):
        sent, batches, ups, memories, after = one_round(defense, state, t, memories)
        clients = tuple(range(len(batches)))
        found.append(
            Round(
                t,
                participants=clients,
                params=state.params,
                after=after.params,
                secret={},
                down=sent.down,
                ups=ups,
                batches=tuple(batches),
            )
        )
        state = after
    return found
