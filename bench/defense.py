"""What a defense is: the protocol that a federation runs, as pure functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from fedarena.batch import Batch
from fedarena.forms import run_general
from fedarena.local import adam_step
from fedarena.rng import Rng
from fedarena.task import Task
from fedarena.tensors import Tensors, combine
from fedarena.threat import NotApplicable, Threat
from fedarena.transcript import Seen
from fedarena.view import Observation


@dataclass(frozen=True)
class State:
    """The server between rounds.

    Attributes:
        params: W_t, the model that the server would deploy.
        round: t.
        optimizer: the server optimiser's memory, by parameter.
        extra: whatever else a protocol keeps.
    """

    params: Tensors
    round: int = 0
    optimizer: Mapping[str, tuple[Tensor, ...]] = field(default_factory=dict)
    extra: Tensors = field(default_factory=dict)


@dataclass(frozen=True)
class Broadcast:
    """What the server sends in a round, and what it drew and keeps."""

    down: Tensors
    secret: Tensors = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """One way to turn what a party saw into observations."""

    name: str
    observations: tuple[Observation, ...]


class Defense(ABC):
    """A federated protocol.

    `client` is written for ONE client as a pure function of tensors. The harness runs it for all
    clients, an attacker differentiates it with respect to a candidate batch, and a test holds every
    faster form to it. A defense never sees data other than through `client`, and never learns which
    clients are corrupted. `fedarena.defenses.fedavg` is the smallest complete example.
    """

    def __init__(self, options: Any, task: Task) -> None:
        self.options = options
        self.task = task

    def init(self, params: Tensors, rng: Rng) -> State:
        """The server before the first round, from the initial parameters."""
        return State(params)

    @abstractmethod
    def broadcast(self, state: State, rng: Rng) -> Broadcast:
        """Tensors on the down link; their bytes are the cost of the down link."""

    def draw(self, rng: Rng) -> Tensors:
        """One client's private randomness of one round."""
        return {}

    @abstractmethod
    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        """One client's upload and its memory for its next round. Pure; differentiable in `batch`."""

    def clients(
        self, down: Tensors, batches: Sequence[Batch], memories: Sequence[Tensors], noises: Sequence[Tensors]
    ) -> tuple[Tensors, list[Tensors]]:
        """`client` for many at once: uploads stacked over clients, and their memories."""
        return run_general(self.client, self.task, down, batches, memories, noises)

    @abstractmethod
    def direction(self, state: State, sent: Broadcast, ups: Tensors, weights: Tensor) -> Tensors:
        """The aggregate, as the direction that the server steps against: W ← W − step·direction.

        Args:
            ups: uploads stacked over clients. weights: [clients], N_c.
        """

    def aggregate(self, state: State, sent: Broadcast, ups: Tensors, weights: Tensor) -> State:
        """W_{t+1}: one step of the server's optimiser against `direction`."""
        schedule = self.task.schedule
        direction = self.direction(state, sent, ups, weights)
        if schedule.server_optimizer == "sgd":
            params = combine(1.0, state.params, -schedule.step_size, direction)
            return State(params, state.round + 1, {}, state.extra)
        params, memory = {}, {}
        for name, d in direction.items():
            step, memory[name] = adam_step(d, state.optimizer.get(name), state.round + 1, schedule.step_size)
            params[name] = state.params[name] - step
        return State(params, state.round + 1, memory, state.extra)

    @abstractmethod
    def readings(
        self, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
    ) -> Sequence[Reading] | NotApplicable:
        """What a party observes of others' samples in the rounds `victims`.

        Args:
            threat: the party and its form.
            seen: the rounds that the party saw, already cut to its sight.
            victims: rounds whose samples the attack is after.

        Returns:
            One reading for each way of looking (the first is the main one), or why there is none.
        """
