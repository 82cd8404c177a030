"""What a defense is: the protocol that a federation runs, as pure functions."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregator, Call, checked
from fedarena.contracts.observable import Observable
from fedarena.contracts.secure_sum import SecureSum
from fedarena.core.contract import inherit_together
from fedarena.core.errors import UserError, of_type, place_of
from fedarena.core.rng import Rng
from fedarena.core.tensors import (
    Tensors,
    are_tensors,
    combine,
    flatten,
    format_of,
    kind_of,
    nbytes,
    row,
    rows,
    scale,
    shaped,
    shapes_of,
    weighted_mean,
)
from fedarena.models.drawn import has_drawn
from fedarena.problem.client_steps import run_general
from fedarena.problem.local_training import adam_step
from fedarena.problem.task import Auxiliary, Batch, Task


@dataclass(frozen=True)
class State:
    """The server between rounds.

    Attributes:
        params: W_t, the model that the server would deploy.
        round: t.
        optimizer: the server optimiser's memory, by parameter.
        extra: further tensors that a protocol or its aggregation rule keeps.
        auxiliary: the server's own samples, for protocols and rules that declare them.
        verdict: how the server treated each upload of the last round, [participants] by name. `used` is the weight of
            an upload in the aggregate; further names are a protocol's own.
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
    """What the server sends in a round, and what it drew for the round and keeps secret."""

    down: Tensors
    secret: Tensors = field(default_factory=dict)


@dataclass(frozen=True)
class Cohort:
    """The clients whose uploads the server got in a round.

    Attributes:
        clients: their numbers, in the order of the uploads.
        weights: N_c of each [participants]. With secure aggregation the server gets one upload for all of them
            together, and this is Σ N_c [1].
    """

    clients: tuple[int, ...]
    weights: Tensor


@dataclass(frozen=True)
class Direction:
    """The direction that the server steps against, and what it keeps.

    Attributes:
        step: named and shaped like the parameters.
        extra, verdict: become the next state's.
    """

    step: Tensors
    extra: Tensors = field(default_factory=dict)
    verdict: Tensors = field(default_factory=dict)


class Defense(Observable):
    """A federated protocol.

    `client` is written for ONE client as a pure function of tensors. The harness runs it for all clients, an attacker
    differentiates it with respect to a candidate batch, and a test compares every faster form with it. A defense sees
    data through `client` alone, and never learns which clients are corrupted. What each party observes is declared by
    the base class. `fedarena.defenses.fedavg.protocol` is the smallest complete example.
    """

    def __init__(self, options: Any, task: Task, rule: Aggregator | None = None) -> None:
        self.options = options
        self.task = task
        self.rule = rule
        self.secure: SecureSum | None = None
        if task.schedule.client_momentum and self.no_momentum:
            raise UserError(
                "option 'client_optimizer' is momentum, allowed with local-epochs 0 and this defense: sgd, because "
                f"{self.no_momentum}"
            )
        if has_drawn(task.model) and not self.dropout:
            raise UserError(
                "option 'model' has dropout or a bottleneck, allowed with this defense: a model without, because its "
                "clients do not take plain gradient steps with masks or noise of their own"
            )
        if task.schedule.batch_statistics:
            self._check_statistics()
        if rule is not None:
            try:
                rule.check(task.participants, task.assumed_corrupted_per_round)
            except UserError as error:
                raise UserError(f"{error} (see --clients, --assumed-corrupted, --participation)") from None

    def __new__(cls, *given: Any, **named: Any) -> Self:
        """An object that runs its own `client`, and no faster form of another protocol's that it inherits.

        Nor does it inherit what is said of another protocol's methods: a class with a client's or a server's step of
        its own says itself that they take a momentum, dropout or a sum, and what they send beside uploads.
        """
        about = ("clients", "client_low_memory", "statistics", "no_momentum", "dropout")
        inherit_together(cls, Defense, "client", about)
        for step in ("combine", "direction", "aggregate"):
            inherit_together(cls, Defense, step, ("sums",))
        return super().__new__(cls)

    sums: ClassVar[bool] = False
    """Whether the server needs the weighted mean of the uploads alone, so that they may be summed securely."""

    no_momentum: ClassVar[str] = (
        "nothing says that its clients send gradients that can be added up over rounds (no_momentum)"
    )
    """Why clients cannot send momenta in place of gradients (`Schedule.client_momentum`), after "because".
    Empty: they can, since `client` sends and keeps them (`fedarena.problem.client_steps.momentum`)."""

    undisclosed: ClassVar[str] = ""
    """What clients draw or remember, keep to themselves, and add to their messages without a guarantee or a declared
    `noise_std`, after "clients". Empty: there is no such thing. It must not follow from the messages themselves."""

    dropout: ClassVar[bool] = False
    """Whether `client` draws in the model's layers what its batch says (`Batch.masks`). Others refuse models with
    dropout or a bottleneck."""

    # -- what the protocol declares -------------------------------------------------------------------

    def secured(self, secure: SecureSum | None) -> Self:
        """The same protocol with secure aggregation, by which the server learns the mean of the uploads alone.

        Args:
            secure: how uploads are summed; None: the server sees every upload.

        Raises:
            UserError: the protocol or its aggregation rule needs every upload.
        """
        if secure is not None:
            self._check_sums(secure)
        protocol = copy.copy(self)
        protocol.secure = secure
        return protocol

    def _check_sums(self, secure: SecureSum) -> None:
        if not self.sums:
            raise UserError(
                "option 'defense' has secure aggregation, which shows the server a sum, but this protocol needs every "
                "upload; allowed with it: a protocol that needs their mean (sums = True), such as fedavg or baffle"
            )
        if self.rule is not None:
            raise UserError(
                "option 'defense' has secure aggregation, which shows the server a sum, but an aggregation rule needs "
                "every upload; allowed: one of them"
            )
        if self.task.schedule.batch_statistics:
            raise UserError(
                "option 'batch_statistics' is true, allowed with secure aggregation: false: the statistics would be "
                "summed with the uploads, and no attack here reads their sum"
            )
        secure.check(self.task.participants)

    def _check_statistics(self) -> None:
        """Refuse statistics of batch normalisation that nobody would send. Raises UserError."""
        why = ""
        if type(self).statistics is Defense.statistics:
            why = "its clients do not take plain gradient steps with them: allowed with this defense: false"
        elif not self.task.batch_norms:
            why = "the model does not normalise by the batch at hand: allowed with it: false, or see model.norm"
        if why:
            raise UserError(f"option 'batch_statistics' is true, but {why}")

    @classmethod
    def holds(cls, options: Any) -> Auxiliary | None:
        """The samples that the server must hold for the protocol; an aggregation rule declares its own."""
        return None

    @property
    def sampling(self) -> Literal["fixed", "poisson"]:
        """How a client draws the batch of a FedSGD round: b samples, or each sample with probability b/N_c."""
        return "fixed"

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise on each coordinate of an honest upload, which is public; 0: no noise."""
        return 0.0

    @property
    def step_size(self) -> float:
        """The server's learning rate on the direction, in `in_round` that of the round."""
        return self.task.schedule.step_size

    def in_round(self, t: int) -> Self:
        """The protocol as it is played in round t, with that round's learning rate."""
        task = self.task.in_round(t)
        if task is self.task:
            return self
        protocol = copy.copy(self)
        protocol.task = task
        return protocol

    def assumed(self, uploads: int) -> int:
        """f, how many of a round's uploads are assumed to be corrupted."""
        return self.task.assumed_corrupted_per_round

    # -- the server before and in a round -------------------------------------------------------------

    def init(self, params: Tensors, rng: Rng, auxiliary: Batch | None = None) -> State:
        """The server before the first round, from the initial parameters and the samples that it holds."""
        return State(params, auxiliary=auxiliary)

    @abstractmethod
    def broadcast(self, state: State, rng: Rng) -> Broadcast:
        """What the server sends. The bytes of these tensors are the cost of the down link."""

    def chosen_broadcast(self, state: State, params: Tensors, rng: Rng) -> Broadcast:
        """What a malicious server sends so that clients work at a model of its choice; by default as an honest one."""
        return self.broadcast(replace(state, params=params), rng)

    def takes(self, down: Tensors, honest: Tensors) -> bool:
        """Whether a client takes a broadcast in a round in which an honest server sends `honest`.

        By default it does where names, shapes and types are the same.
        """
        return format_of(down) == format_of(honest)

    @abstractmethod
    def direction(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        """The aggregate, as the direction that the server steps against: W ← W − step·direction.

        Args:
            ups: uploads stacked over the cohort. rng: the server's randomness of this round.
        """

    def combine(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        """One upload from all by the aggregation rule, or without a rule their mean weighted by N_c."""
        if self.rule is None:
            return Direction(weighted_mean(ups, cohort.weights), verdict={"used": cohort.weights})
        reference = partial(self._reference, state, sent) if self.rule.auxiliary else None
        call = Call(
            weights=cohort.weights,
            f=self.assumed(len(cohort.clients)),
            memory=state.extra,
            rng=rng,
            reference=reference,
            senders=cohort.clients,
            shapes=tuple(tuple(t.shape[1:]) for t in ups.values()),
        )
        x = rows(ups)
        aggregate = checked(self.rule(x, call), self.rule, x)
        verdict = {} if aggregate.weight is None else {"used": aggregate.weight}
        return Direction(shaped(aggregate.vector, row(ups, 0)), aggregate.memory, verdict)

    def aggregate(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> State:
        """W_{t+1}: one step of the server's optimiser against `direction`."""
        direction = of_type(Direction, self.direction(state, sent, ups, cohort, rng), "defense", type(self).direction)
        if missing := [name for name in state.params if name not in direction.step]:
            raise UserError(
                f"defense {place_of(type(self).client)}: the server's step lacks {', '.join(missing)}, allowed: an "
                "entry for each parameter; its names are those of an upload unless `direction` gives others"
            )
        shapes, wanted = shapes_of(direction.step), shapes_of(state.params)
        if odd := {name: shape for name, shape in wanted.items() if shapes[name] != shape}:
            told = f"the server's step has {', '.join(f'{name} {shapes[name]}' for name in odd)}"
            allowed = ", ".join(f"{name} {shape}" for name, shape in odd.items())
            raise UserError(
                f"defense {place_of(type(self).client)}: {told}, allowed: {allowed}; its shapes are those of an upload "
                "unless `direction` gives others"
            )
        params, optimizer = self.step(state, direction.step)
        self._require_precision(state.params, params, ups)
        return State(
            params=params,
            round=state.round + 1,
            optimizer=optimizer,
            extra=direction.extra,
            auxiliary=state.auxiliary,
            verdict=direction.verdict,
            steps=state.steps + 1,
        )

    def _require_precision(self, before: Tensors, after: Tensors, ups: Tensors) -> None:
        """Raise UserError, with the place, where a step of the server changes the precision of parameters."""
        for name, w in before.items():
            if after[name].dtype != w.dtype:
                of_uploads = any(torch.promote_types(up.dtype, w.dtype) != w.dtype for up in ups.values())
                method = type(self).client if of_uploads else type(self).direction
                made, allowed = (str(t.dtype).removeprefix("torch.") for t in (after[name], w))
                told = f"what it returns makes {name} {made}, allowed: {allowed}"
                raise UserError(f"defense {place_of(method)}: {told}")

    def step(self, state: State, direction: Tensors) -> tuple[Tensors, Mapping[str, tuple[Tensor, ...]]]:
        """One step of the server's optimiser: the new parameters and its memory.

        With FedSGD and weight decay λ the server steps against the direction plus λ·W.
        """
        schedule = self.task.schedule
        if schedule.server_decay:
            direction = combine(1.0, direction, schedule.server_decay, {name: state.params[name] for name in direction})
        if schedule.server_optimizer == "sgd":
            return combine(1.0, state.params, -self.step_size, direction), {}
        params, memory, t = {}, {}, state.steps + 1
        for name, d in direction.items():
            step, memory[name] = adam_step(d, state.optimizer.get(name), t, self.step_size, schedule.adam_beta2)
            params[name] = state.params[name] - step
        return params, memory

    def direction_between(self, before: Tensors, after: Tensors) -> Tensors:
        """The direction behind one plain step of the server: (W_t − W_{t+1})/step − λ·W_t, of the names in `before`."""
        direction = scale(1 / self.step_size, combine(1.0, before, -1.0, {name: after[name] for name in before}))
        decay = self.task.schedule.server_decay
        return combine(1.0, direction, -decay, before) if decay else direction

    def skipped(self, state: State) -> State:
        """The server after a round that failed, because too few clients were left for a secure sum."""
        return replace(state, round=state.round + 1)

    def _reference(self, state: State, sent: Broadcast) -> Tensor:
        """The upload that the server's own samples give, [d]."""
        assert state.auxiliary is not None, "the harness gives a server the samples that its rule declares"
        return flatten(self.expected_upload(sent.down, *state.auxiliary.images()))

    # -- a client -------------------------------------------------------------------------------------

    def draw(self, rng: Rng) -> Tensors:
        """One client's private randomness of one round."""
        return {}

    @abstractmethod
    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        """One client's upload, and its memory for its next round. It is pure and differentiable in `batch`.

        Args:
            down: the broadcast. memory: what the client kept; {} at first. noise: what `draw` gave.
        """

    def client_low_memory(
        self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors
    ) -> tuple[Tensors, Tensors]:
        """`client` in the form that takes the least memory, whose peak is part of the cost."""
        return self.client(down, batch, memory, noise)

    def clients(
        self, down: Tensors, batches: Sequence[Batch], memories: Sequence[Tensors], noises: Sequence[Tensors]
    ) -> tuple[Tensors, list[Tensors]]:
        """`client` for many clients at once: the uploads, stacked over clients, and the clients' memories."""
        shapes: list[dict[str, list[int]]] = []

        def client(*given: Any) -> tuple[Tensors, Tensors]:
            up, memory = self.checked_client(*given)
            shapes.append(shapes_of(up))
            if shapes[0] != shapes[-1]:
                told = f"returned an upload {shapes[-1]} where another client's is {shapes[0]}"
                raise UserError(f"defense {place_of(type(self).client)} {told}, allowed: the same for all clients")
            return up, memory

        return run_general(client, self.task, down, batches, memories, noises)

    def checked_client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        """`client`. Raises UserError, with its place, where it returns something else than an upload and a memory."""
        returned: Any = self.client(down, batch, memory, noise)
        parts = returned if isinstance(returned, tuple) else ()
        if len(parts) == 2 and all(isinstance(part, Mapping) and are_tensors(part.values()) for part in parts):
            return parts[0], parts[1]
        raise UserError(
            f"defense {place_of(type(self).client)} returned {kind_of(returned)}, allowed: an upload and a memory, "
            "both tensors by name"
        )

    def statistics(self, down: Tensors, batch: Batch) -> Tensors:
        """What one client sends in clear beside its upload: the statistics of batch normalisation; {}: nothing.

        They are pure and differentiable in `batch`, and the server's step does not use them. A protocol whose clients
        can send them (`Schedule.batch_statistics`) overrides this.
        """
        return {}

    def expected_upload(self, down: Tensors, x: Tensor, y: Tensor) -> Tensors:
        """The upload of a client with these samples [n, ...] in this round, without noise and memory.

        If clients send momenta, it is the one of a client that had this gradient in all rounds, c·g/(1 − β): a server
        that compares uploads with its own needs one of their size.
        """
        schedule = self.task.schedule
        b = len(y) if schedule.fedsgd else min(schedule.batch_size, len(y))
        whole, epochs = len(y) // b * b, max(1, schedule.local_epochs)

        def local(t: Tensor) -> Tensor:
            return torch.cat([t[:whole].reshape(-1, b, *t.shape[1:])] * epochs)

        up = self.client(down, Batch(local(x), local(y)), {}, {})[0]
        return scale(1 / (1 - schedule.momentum), up) if schedule.client_momentum else up

    # -- what comes out -------------------------------------------------------------------------------

    def deployed(self, state: State) -> Tensors:
        """The model that the server would deploy now."""
        return state.params

    def in_use(self, state: State, corrupted: Collection[int] = ()) -> list[Tensors]:
        """The models that somebody would use now, which the harness evaluates: the deployed one.

        Args:
            corrupted: clients whose models count for nothing, where every client has its own.
        """
        return [self.deployed(state)]

    def release(self, state: State, rng: Rng) -> Tensors:
        """The model that clients are given in the end, in the plain model's parameters.

        `final_model` says who has it, and who has another one.
        """
        return self.deployed(state)

    def sent_bytes(self, ups: Tensors) -> int:
        """Bytes that the stacked uploads take on the wire: the size of their tensors, unless these are padded."""
        return nbytes(ups)

    def guarantees(self) -> dict[str, float]:
        """The numbers that the protocol guarantees, such as epsilon and delta. The card says how they are printed."""
        return {}

    def diagnostics(self, sent: Broadcast, batch: Batch, noise: Tensors, ups: Tensors) -> Tensors:
        """What the harness counts in a round for `warnings`. No party learns it.

        Args:
            batch, noise: those of the first client that computed. ups: all uploads, before secure aggregation.
        """
        return {}

    def warnings(self, verdicts: Sequence[Tensors]) -> tuple[str, ...]:
        """Texts that must stand beside every number of a run, such as that something in it was simulated.

        Args:
            verdicts: `State.verdict` after each round, together with its `diagnostics`.
        """
        return ()
