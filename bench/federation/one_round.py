"""One round of a federation: the server sends, the clients work, the server steps."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import torch

from fedarena.contracts.aggregator import calls_of
from fedarena.contracts.defense import Broadcast, Cohort, Defense, State
from fedarena.contracts.secure_sum import TooFewSurvivors
from fedarena.contracts.transcript import Round, weights
from fedarena.core.contract import is_built_in
from fedarena.core.errors import UserError, of_type, place_of
from fedarena.core.global_generators import seeded_generators
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, is_plain, nbytes, stack, to
from fedarena.core.threat import CURIOUS
from fedarena.federation.adversary import Adversary, NoAdversary
from fedarena.federation.client_memory import PeakMemory
from fedarena.federation.replay import NO_REPLAYS, Replays, digest
from fedarena.federation.secure_aggregation import Summed, sum_up
from fedarena.models.drawn import draw_masks, has_drawn
from fedarena.problem.problem import Problem
from fedarena.problem.task import Batch

Draw = Callable[[int, int], Batch | None]
"""(round, client) → the batch that an experiment prescribes; None: the client draws as the problem says.

Masks that it lacks are drawn."""


@dataclass(frozen=True)
class Federation:
    """The participants of a run, and their memories.

    Attributes:
        defense, problem: the protocol and what it trains.
        rng: the randomness of server and honest clients.
        adversary: the corrupted clients.
        draw: prescribed batches.
        peak: measures the memory of a client; None: it is of no interest.
        replays: remembers some calls of the defense.
        memories: what each client keeps between rounds.
        asked: how often a user's protocol asked its rule in each round.
    """

    defense: Defense
    problem: Problem
    rng: Rng
    adversary: Adversary | NoAdversary
    draw: Draw
    peak: PeakMemory | None
    replays: Replays = NO_REPLAYS
    memories: dict[int, Tensors] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)

    def require_asked(self) -> None:
        """Raise UserError where a user's protocol never asked the rule that stands after its name."""
        if self.asked and not any(self.asked):
            raise UserError(
                f"defense {place_of(type(self.defense))} never asks its rule {place_of(self.defense.rule)}, allowed: a "
                "server's step that calls self.combine(…), or the defense without a rule"
            )


@dataclass(frozen=True)
class ClientWork:
    """The inputs of a round's participants, in the same order: batches, and their own randomness.

    Noises of clients that do not compute are {}, but for the first one's.
    """

    clients: tuple[int, ...]
    batches: list[Batch]
    noises: list[Tensors]


@dataclass(frozen=True)
class Uploads:
    """All uploads of a round.

    Attributes:
        sent: stacked in the order of the participants.
        first: the position of the first participant that ran the protocol's client step.
        statistics: what participants send beside their uploads, stacked alike.
    """

    sent: Tensors
    first: int
    statistics: Tensors = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """How the server treated each upload of a round: values by name, in the order of `clients`."""

    clients: tuple[int, ...]
    values: dict[str, tuple[float, ...]]


@dataclass(frozen=True)
class RoundResult:
    """The result of one round.

    Attributes:
        state: the server after the round.
        participants: how many clients took part.
        bytes_up, bytes_down: bytes sent by and to all participants together.
        seconds: time of the round, without drawing batches and measuring memory.
        failed: whether too few clients were left for a secure sum.
        diagnostics: what `Defense.warnings` reads of the round; {} where it failed.
        verdict: how the server treated single uploads, if it saw them.
        transcript: the round in full, if it was to be written down.
    """

    state: State
    participants: int
    bytes_up: float
    bytes_down: float
    seconds: float
    failed: bool = False
    diagnostics: Tensors = field(default_factory=dict)
    verdict: Verdict | None = None
    transcript: Round | None = None


class Clock:
    """Adds up the seconds spent in `with` blocks: CPU time of the process on a CPU, wall time on a GPU."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.seconds = 0.0

    def __enter__(self) -> Self:
        self._began = self._now()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds += self._now() - self._began

    def _now(self) -> float:
        if self.device.type == "cpu":
            return time.process_time()
        torch.cuda.synchronize(self.device)
        return time.perf_counter()


def play(federation: Federation, state: State, t: int, write: bool = False) -> RoundResult:
    """Play round t.

    Args:
        state: the server before the round.
        write: whether the round is to be written down in full.

    Raises:
        TooLarge: an upload is beyond what can be summed securely.
        UserError: a client's step takes more memory than it may.
    """
    federation = replace(federation, defense=federation.defense.in_round(t))
    defense, rng = federation.defense, federation.rng
    work, clock = draw_work(federation, t), Clock(federation.problem.device)
    with clock:
        sent = _broadcast(defense, state, rng.child("broadcast", t))
    try_first_client(federation, t, sent.down, work)
    down = float(nbytes(sent.down) * len(work.clients))
    try:
        with clock:
            memories = tuple(federation.memories.get(client, {}) for client in work.clients)
            uploads = _uploads(federation, work, sent, t)
            messages = write or not federation.adversary.corrupted  # without an attack for the time that they take
            summed, received, cohort = _received(federation, work.clients, uploads.sent, t, messages)
            given = state, sent, received, cohort, rng.child("aggregate", t)
            new = _aggregated(federation, t, *given)
    except TooFewSurvivors as lost:
        return RoundResult(
            state=defense.skipped(state),
            participants=len(work.clients),
            bytes_up=lost.bytes_up,
            bytes_down=down + lost.bytes_down,
            seconds=clock.seconds,
            failed=True,
        )
    new = of_type(State, new, "defense", type(defense).aggregate)
    # Not timed, since a client has them of its own step.
    uploads = replace(uploads, statistics=stack([defense.statistics(sent.down, batch) for batch in work.batches]))
    batch, noise = work.batches[uploads.first], work.noises[uploads.first]
    return RoundResult(
        state=new,
        participants=len(work.clients),
        bytes_up=_clear_bytes(defense, uploads) if summed is None else summed.bytes_up,
        bytes_down=down if summed is None else down + summed.bytes_down,
        seconds=clock.seconds,
        diagnostics={**new.verdict, **defense.diagnostics(sent, batch, noise, uploads.sent)},
        verdict=_verdict(work.clients, new.verdict) if summed is None else None,
        transcript=_transcript(federation, t, work, memories, uploads, summed, sent, (state, new)) if write else None,
    )


def _clear_bytes(defense: Defense, uploads: Uploads) -> int:
    """Bytes of what participants send, where no secure sum hides it."""
    return defense.sent_bytes(uploads.sent) + nbytes(uploads.statistics)


def try_first_client(federation: Federation, t: int, down: Tensors, work: ClientWork) -> None:
    """Measure the memory of a client's step, and see whether a user's is pure. Raises UserError."""
    defense, memory = federation.defense, federation.memories.get(work.clients[0], {})
    if federation.peak is not None:
        federation.peak.measure(defense, down, work.batches[0], memory, work.noises[0])
    if t == 0 and not is_built_in(type(defense)):
        _require_pure(defense, down, work.batches[0], work.noises[0])


def _require_pure(defense: Defense, down: Tensors, batch: Batch, noise: Tensors) -> None:
    """Raise UserError for a user's client step that makes another upload of the same inputs."""
    uploads = []
    for _ in range(2):
        with seeded_generators(0):  # from which it may draw
            uploads.append(digest(defense.client(down, batch, {}, noise)))
    if uploads[0] != uploads[1]:
        place = place_of(getattr(defense, "function", type(defense).client))
        raise UserError(
            f"defense {place} makes another upload of the same inputs: it draws by itself or keeps hidden state, "
            "allowed: draws in `draw`, and state in the client's memory"
        )


def _aggregated(federation: Federation, t: int, *given: Any) -> State:
    """The server's step."""
    defense = federation.defense
    if defense.rule is None or is_built_in(type(defense)):
        return federation.replays.call(t, "aggregate", defense.aggregate, *given)
    with calls_of(defense.rule) as calls:
        new = federation.replays.call(t, "aggregate", defense.aggregate, *given)
    federation.asked.append(len(calls))
    return new


def _broadcast(defense: Defense, state: State, rng: Rng) -> Broadcast:
    """What the server sends. Raises UserError where that is no broadcast."""
    return of_type(Broadcast, defense.broadcast(state, rng), "defense", type(defense).broadcast)


def sample_clients(problem: Problem, rng: Rng) -> tuple[int, ...]:
    """⌈c·C⌉ (at least one) clients, drawn uniformly without replacement, in ascending order."""
    total, count = len(problem.shards), problem.task.participants
    return tuple(sorted(torch.randperm(total, generator=rng.torch())[:count].tolist()))


def draw_work(federation: Federation, t: int, everyone: bool = False) -> ClientWork:
    """Sample the participants of round t, and draw their batches and their randomness.

    Args:
        everyone: whether corrupted clients compute, too, that send something else.
    """
    defense, problem, rng = federation.defense, federation.problem, federation.rng
    clients = sample_clients(problem, rng.child("sample", t))
    poisson = defense.sampling == "poisson"
    prescribed = [federation.draw(t, client) for client in clients]
    free = [client for client, batch in zip(clients, prescribed, strict=True) if batch is None]
    drawn = iter(problem.batches([(client, rng.child("batch", t, client)) for client in free], poisson))
    batches = [
        federation.adversary.batch(client, next(drawn) if batch is None else batch, t)
        for client, batch in zip(clients, prescribed, strict=True)
    ]
    classes = problem.task.n_classes
    if classes and any(batch.y.is_floating_point() for batch in batches):  # fast forms take labels of one kind
        batches = [batch.with_targets(classes) for batch in batches]
    if has_drawn(problem.task.model):
        own = [rng.child("dropout", t, client) for client in clients]
        batches = [b if b.masks else with_masks(problem, b, one) for b, one in zip(batches, own, strict=True)]
    drawing = {0, *(range(len(clients)) if everyone else _computing(federation, clients))}
    noises = [
        to(defense.draw(rng.child("noise", t, client)), problem.device) if i in drawing else {}
        for i, client in enumerate(clients)
    ]
    return ClientWork(clients, batches, noises)


def with_masks(problem: Problem, batch: Batch, rng: Rng) -> Batch:
    """A client's batch with what the model's layers draw for each step and sample, such as masks of dropout."""
    steps, b = batch.x.shape[:2]
    return replace(batch, masks=to(draw_masks(problem.task.model, (steps, b), rng), problem.device))


def _uploads(federation: Federation, work: ClientWork, sent: Broadcast, t: int) -> Uploads:
    """Run the clients' step and let the corrupted clients replace their uploads. Updates the clients' memories."""
    adversary, memories, computing = federation.adversary, federation.memories, _computing(federation, work.clients)
    computed, after = federation.defense.clients(
        sent.down,
        [work.batches[i] for i in computing],
        [memories.get(work.clients[i], {}) for i in computing],
        [work.noises[i] for i in computing],
    )
    if len(work.clients) < len(federation.problem.shards):
        after = [_apart(memory) for memory in after]
    memories.update(zip((work.clients[i] for i in computing), after, strict=True))
    return Uploads(adversary.uploads(t, _cohort(federation, work.clients), sent.down, computed), computing[0])


def _apart(memory: Tensors) -> Tensors:
    """A memory without views: one row of a tensor of all participants would keep those of the others, too."""
    return {
        name: t.clone() if is_plain(t) and t.untyped_storage().nbytes() > t.nbytes else t for name, t in memory.items()
    }


def _computing(federation: Federation, clients: tuple[int, ...]) -> list[int]:
    """The positions of the participants that run the protocol's step, or all positions where none of them does.

    At least one upload is computed, because it shows the attack what an upload looks like.
    """
    computing = [i for i, client in enumerate(clients) if federation.adversary.computes(client)]
    return computing or list(range(len(clients)))


def _cohort(federation: Federation, clients: tuple[int, ...]) -> Cohort:
    problem = federation.problem
    return Cohort(clients, weights(problem.task.sizes, clients).to(problem.device))


def _received(
    federation: Federation, clients: tuple[int, ...], ups: Tensors, t: int, messages: bool
) -> tuple[Summed | None, Tensors, Cohort]:
    """The secure sum, if there is one, the uploads that the server receives, and their senders.

    Raises TooFewSurvivors and TooLarge, as `fedarena.contracts.secure_sum.SecureSum` does.
    """
    secure, cohort = federation.defense.secure, _cohort(federation, clients)
    if secure is None:
        return None, ups, cohort
    randomness, corrupted = federation.rng.child("secure", t), federation.adversary.corrupted
    summed = sum_up(secure, ups, cohort, randomness, corrupted, messages, federation.replays, t)
    return summed, *summed.received()


def _verdict(clients: tuple[int, ...], verdict: Tensors) -> Verdict | None:
    if not verdict:
        return None
    return Verdict(clients, {name: tuple(v.double().tolist()) for name, v in verdict.items()})


def _transcript(
    federation: Federation,
    t: int,
    work: ClientWork,
    memories: tuple[Tensors, ...],
    uploads: Uploads,
    summed: Summed | None,
    sent: Broadcast,
    states: tuple[State, State],
) -> Round:
    """The whole round, as only the harness sees it.

    Args:
        memories: of the participants before the round. states: the server's before and after it.
    """
    before, after = states
    if summed is not None:
        averaged = summed.clients
    else:  # the client whose upload the server steps by, where it steps by a single one
        averaged = (work.clients[int(after.verdict["used"].argmax())],) if federation.defense.picks else ()
    return Round(
        index=t,
        participants=work.clients,
        params=before.params,
        after=after.params,
        secret=sent.secret,
        down=sent.down,
        ups=uploads.sent,
        batches=tuple(work.batches),
        wire=None if summed is None else summed.wire,
        mean=None if summed is None else summed.mean,
        averaged=averaged,
        victim=_victim(work.clients, federation.rng.child("victim", t)),
        extra=before.extra,
        memories=memories,
        statistics=uploads.statistics,
    )


def _victim(participants: tuple[int, ...], rng: Rng) -> int:
    """The client that is attacked, drawn anew in each round: a protocol may protect one client and no others.

    It is not the client that may be curious, which owns its samples, where another one took part.
    """
    others = [client for client in participants if client != CURIOUS] or [*participants]
    return others[int(torch.randint(len(others), (), generator=rng.torch()))]
