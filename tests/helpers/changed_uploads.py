"""Small federations whose clients change their uploads, and the plain uploads of the same rounds."""

from __future__ import annotations

from typing import Any

from torch import nn

from fedarena.contracts.defense import State
from fedarena.contracts.observation import Reading
from fedarena.contracts.transcript import cut
from fedarena.core import registry
from fedarena.core.tensors import Tensors, stack
from fedarena.core.threat import Form, Party, Threat
from fedarena.defenses.fedavg.changed_upload import ChangedUpload
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task
from helpers.baffle import one_round, watched
from helpers.dbcl import mlp, parameters


def make(name: str, model: nn.Module | None = None, shape: tuple[int, ...] = (12,), **options: Any) -> ChangedUpload:
    """Three clients, with batches of four."""
    schedule = Schedule(rounds=20, batch_size=options.pop("batch_size", 4), lr=0.3)
    task = Task(model or mlp(), input_shape=shape, n_classes=3, sizes=(20, 40, 40), schedule=schedule)
    card = registry.find("defense", name)
    made: ChangedUpload = card.load()(card.options(**options), task)
    return made


def sent_and_plain(defense: ChangedUpload, seed: int = 0) -> tuple[State, Tensors, Tensors]:
    """The state before a round, what the clients send, and what they would send without a defense."""
    state = State(parameters(defense.task.model, seed))
    _, batches, ups, _, _ = one_round(defense, state, seed)
    plain = FedAvg(None, defense.task)
    return state, ups, stack([plain.client(state.params, batch, {}, {})[0] for batch in batches])


def read(defense: ChangedUpload, party: Party, form: Form) -> list[Reading]:
    """What a party reads of the first of two rounds."""
    threat = Threat(party, form)
    found = defense.readings(threat, cut(watched(defense, 2), threat), [0])
    assert isinstance(found, list), found
    return found
