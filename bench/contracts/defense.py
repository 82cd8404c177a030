"""What a defense is: the protocol that a federation runs, as pure functions."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregator, Call
from fedarena.contracts.observation import Disclosure, Reading
from fedarena.contracts.secure_sum import SecureSum
from fedarena.contracts.transcript import Seen
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, combine, flatten, nbytes, row, rows, shaped, weighted_mean
from fedarena.core.threat import NotApplicable, Threat
from fedarena.problem.batch import Auxiliary, Batch
from fedarena.problem.client_steps import run_general
from fedarena.problem.local_training import adam_step
from fedarena.problem.task import Task

UNSEEN = NotApplicable("the party saw none of the rounds looked at: they failed, or it was not sampled")
"""Why nothing can be made of a server's model."""


@dataclass(frozen=True)
class State:
    """The server between rounds.

    Attributes:
        params: W_t, the model that the server would deploy.
        round: t.
        optimizer: the server optimiser's memory, by parameter.
        extra: whatever else a protocol or its aggregation rule keeps.
        auxiliary: the server's own samples, for protocols and rules that declare that they hold some.
        verdict: what the server made of each upload of the last round, [participants] by name. `used` is the
            weight of an upload in the aggregate; further names are a protocol's own.
        steps: how many steps the server has taken, one for each round that did not fail.
    """

    params: Tensors
    round: int = 0
    optimizer: Mapping[str, tuple[Tensor, ...]] = field(default_factory=dict)
    extra: Tensors = field(default_factory=dict)
    auxiliary: Batch | None = None
    verdict: Tensors = field(default_factory=dict)
    steps: int = 0


@dataclass(frozen=True)
class Broadcast:
    """What the server sends in a round, and what it drew and keeps."""

    down: Tensors
    secret: Tensors = field(default_factory=dict)


@dataclass(frozen=True)
class Cohort:
    """Whose uploads the server got in a round, in their order: client numbers, and N_c of each [participants].

    Of a secure sum it got one upload of all of them together, and their Σ N_c [1].
    """

    clients: tuple[int, ...]
    weights: Tensor


@dataclass(frozen=True)
class Direction:
    """What the server steps against, and what it keeps.

    Attributes:
        step: named and shaped like the parameters.
        extra, verdict: become the next state's.
    """

    step: Tensors
    extra: Tensors = field(default_factory=dict)
    verdict: Tensors = field(default_factory=dict)


class Defense(ABC):
    """A federated protocol.

    `client` is written for ONE client as a pure function of tensors. The harness runs it for all
    clients, an attacker differentiates it with respect to a candidate batch, and a test holds every
    faster form to it. A defense never sees data other than through `client`, and never learns which
    clients are corrupted. `fedarena.defenses.fedavg.protocol` is the smallest complete example.
    """

    def __init__(self, options: Any, task: Task, rule: Aggregator | None = None) -> None:
        self.options = options
        self.task = task
        self.rule = rule
        self.secure: SecureSum | None = None
        if rule is not None:
            rule.check(task.participants, task.assumed_corrupted_per_round)

    sums: ClassVar[bool] = False
    """Whether the server needs the weighted mean of the uploads and nothing else, so that it may be summed securely."""

    def secured(self, secure: SecureSum | None) -> Self:
        """The same protocol, whose server learns only the mean of the uploads, or with None all. Raises UserError."""
        if secure is None:
            found = copy.copy(self)
            found.secure = None
            return found
        if not self.sums:
            raise UserError(
                "option 'defense' has secure aggregation, which shows the server a sum, but this protocol needs every "
                "upload; allowed with it: a protocol that needs their mean, such as fedavg or baffle"
            )
        if self.rule is not None:
            raise UserError(
                "option 'defense' has secure aggregation, which shows the server a sum, but an aggregation rule needs "
                "every upload; allowed: one of them"
            )
        secure.check(self.task.participants)
        found = copy.copy(self)
        found.secure = secure
        return found

    @classmethod
    def holds(cls, options: Any) -> Auxiliary | None:
        """The samples that the server must hold for the protocol itself (its rule declares its own)."""
        return None

    @property
    def sampling(self) -> Literal["fixed", "poisson"]:
        """How a client draws the batch of a FedSGD round: b samples, or each sample with probability b/N_c."""
        return "fixed"

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise on each coordinate of an honest upload; 0: none. Public."""
        return 0.0

    @property
    def step_size(self) -> float:
        """The server's learning rate on the direction."""
        return self.task.schedule.step_size

    def why_not_mean(self) -> str:
        """Why a client that attacks the others' mean has nothing to start from; empty where the server takes a mean, as
        most rules do that expect nobody to be corrupted, be it of one upload."""
        n, f = self.task.participants, self.task.assumed_corrupted_per_round
        if self.rule is None or self.picks or self.rule.averages(n, f):
            return ""
        return (
            "consecutive broadcasts show what the server's rule made of the uploads, and this attack reads the mean "
            "of all of them: that is its limit, and no strength of the rule"
        )

    @property
    def picks(self) -> bool:
        """Whether the server steps by one of the uploads, whole."""
        return self.rule is not None and self.rule.picks(self.task.participants, self.task.assumed_corrupted_per_round)

    @property
    def mean_weights(self) -> tuple[int, ...]:
        """How much each client's upload counts in a mean: N_c, or 1 where a rule takes the plain one."""
        return self.task.sizes if self.rule is None else (1,) * len(self.task.sizes)

    def guarantees(self) -> dict[str, float]:
        """What the protocol promises, by name, such as epsilon and delta; part of every record."""
        return {}

    def init(self, params: Tensors, rng: Rng, auxiliary: Batch | None = None) -> State:
        """The server before the first round, from the initial parameters and the samples that it holds."""
        return State(params, auxiliary=auxiliary)

    @abstractmethod
    def broadcast(self, state: State, rng: Rng) -> Broadcast:
        """Tensors on the down link; their bytes are the cost of the down link."""

    def draw(self, rng: Rng) -> Tensors:
        """One client's private randomness of one round."""
        return {}

    @abstractmethod
    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        """One client's upload and its memory for its next round. Pure; differentiable in `batch`."""

    def client_low_memory(
        self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors
    ) -> tuple[Tensors, Tensors]:
        """`client` in the form that takes the least memory: its peak is part of the cost
        (`fedarena.federation.client_memory`)."""
        return self.client(down, batch, memory, noise)

    def clients(
        self, down: Tensors, batches: Sequence[Batch], memories: Sequence[Tensors], noises: Sequence[Tensors]
    ) -> tuple[Tensors, list[Tensors]]:
        """`client` for many at once: uploads stacked over clients, and their memories."""
        return run_general(self.client, self.task, down, batches, memories, noises)

    @abstractmethod
    def direction(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        """The aggregate, as the direction that the server steps against: W ← W − step·direction.

        Args:
            ups: uploads stacked over the cohort. rng: the server's randomness of this round.
        """

    def combine(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        """The uploads as one, by the aggregation rule; without one the mean weighted by N_c."""
        if self.rule is None:
            return Direction(weighted_mean(ups, cohort.weights), verdict={"used": cohort.weights})
        reference = partial(self._reference, state, sent) if self.rule.auxiliary else None
        call = Call(cohort.weights, self.task.assumed_corrupted_per_round, state.extra, rng, reference)
        done = self.rule(rows(ups), call)
        verdict = {} if done.weight is None else {"used": done.weight}
        return Direction(shaped(done.vector, row(ups, 0)), done.memory, verdict)

    def aggregate(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> State:
        """W_{t+1}: one step of the server's optimiser against `direction`."""
        found = self.direction(state, sent, ups, cohort, rng)
        after = State(
            state.params, state.round + 1, extra=found.extra, auxiliary=state.auxiliary, verdict=found.verdict
        )
        params, optimizer = self.step(state, found.step)
        return replace(after, params=params, optimizer=optimizer, steps=state.steps + 1)

    def step(self, state: State, direction: Tensors) -> tuple[Tensors, Mapping[str, tuple[Tensor, ...]]]:
        """One step of the server's optimiser: the new parameters and its memory."""
        schedule = self.task.schedule
        if schedule.server_optimizer == "sgd":
            return combine(1.0, state.params, -self.step_size, direction), {}
        params, memory, t = {}, {}, state.steps + 1
        for name, d in direction.items():
            step, memory[name] = adam_step(d, state.optimizer.get(name), t, self.step_size, schedule.adam_beta2)
            params[name] = state.params[name] - step
        return params, memory

    def skipped(self, state: State) -> State:
        """The server after a round that gave nothing, because too few clients were left for a secure sum."""
        return replace(state, round=state.round + 1)

    def deployed(self, state: State) -> Tensors:
        """The model that the server would deploy now; it is what gets evaluated."""
        return state.params

    def release(self, state: State, rng: Rng) -> Tensors:
        """The model that clients are given in the end, in the plain model's parameters."""
        return self.deployed(state)

    def sent_bytes(self, ups: Tensors) -> int:
        """Bytes that uploads take on the wire, [participants] stacked; their tensors' size, unless padded."""
        return nbytes(ups)

    def diagnostics(self, sent: Broadcast, batch: Batch, noise: Tensors, ups: Tensors) -> Tensors:
        """What the harness, which sees the work of clients, counts of a round for `warnings`, and no party learns.

        Args:
            batch, noise: of the first client that computed. ups: of all, before they are summed in secret.
        """
        return {}

    def warnings(self, verdicts: Sequence[Tensors]) -> tuple[str, ...]:
        """What must stand beside every number of a run, such as that something in it was simulated.

        Args:
            verdicts: `State.verdict` after each round, with what `diagnostics` counted.
        """
        return ()

    def expected_upload(self, down: Tensors, x: Tensor, y: Tensor) -> Tensors:
        """What a client with these samples [n, ...] would send in this round, without noise and memory."""
        schedule = self.task.schedule
        b = len(y) if schedule.fedsgd else min(schedule.batch_size, len(y))
        whole, epochs = len(y) // b * b, max(1, schedule.local_epochs)

        def local(t: Tensor) -> Tensor:
            return torch.cat([t[:whole].reshape(-1, b, *t.shape[1:])] * epochs)

        return self.client(down, Batch(local(x), local(y)), {}, {})[0]

    def _reference(self, state: State, sent: Broadcast) -> Tensor:
        assert state.auxiliary is not None
        return flatten(self.expected_upload(sent.down, *state.auxiliary.images()))

    @abstractmethod
    def readings(
        self, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
    ) -> Sequence[Reading] | NotApplicable:
        """What a party observes of others' samples in the rounds `victims`.

        Args:
            threat: the party and its form.
            seen: the rounds that the party saw, already cut to what it can see.
            victims: rounds whose samples the attack is after.

        Returns:
            One reading for each way of looking (the first is the main one), or why there is none.
        """

    def disclosure(self, threat: Threat, now: Seen) -> Disclosure | NotApplicable:
        """What a party makes of the server's model from one round that it saw; here the broadcast, if it is the model.

        Protocols that hide the model, or send more than it, say what can be made of it.
        """
        if threat.party == "server":
            return NotApplicable("the server holds its own model")
        plain = {name for name, _ in self.task.model.named_parameters()}
        if set(now.down) != plain:
            return NotApplicable("the broadcast is not the plain model, and the defense has no way to make it one")
        return Disclosure(now.index, now.down)

    def disclosures(
        self, threat: Threat, seen: Mapping[int, Seen], rounds: Sequence[int]
    ) -> Sequence[Disclosure] | NotApplicable:
        """What a party makes of the server's model in the given rounds, as far as it saw them; by default from each of
        them alone.

        Args:
            seen: further rounds may be among them, for protocols whose broadcasts tell more together.

        Returns:
            One for each of `rounds` that it saw, or why it cannot say for one of them.
        """
        found = [self.disclosure(threat, seen[t]) for t in rounds if t in seen]
        told = [d for d in found if isinstance(d, Disclosure)]
        if not found:
            return UNSEEN
        return next((d for d in found if isinstance(d, NotApplicable)), told)
