"""The loop over the rounds of a federation."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean, median

from fedarena.contracts.defense import Defense, State
from fedarena.contracts.peers import Peers
from fedarena.contracts.secure_sum import TooLarge
from fedarena.contracts.transcript import Round
from fedarena.core import freed_memory
from fedarena.core.global_generators import generators_of
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, finite
from fedarena.federation import one_round, peer_round
from fedarena.federation.adversary import Adversary, NoAdversary
from fedarena.federation.client_memory import PeakMemory
from fedarena.federation.one_round import Draw, Federation, RoundResult, Verdict
from fedarena.federation.replay import NO_REPLAYS, Replays
from fedarena.problem.problem import Problem

Probe = Callable[[Sequence[Tensors]], float | None]
"""The models in use → a number, or None."""


@dataclass(frozen=True)
class Point:
    """The model after `rounds` rounds, on held-out data; without a server, the mean over the honest nodes' own models.

    Attributes:
        by_class: see `fedarena.problem.problem.Problem.evaluate_by_class`.
        probed: what the caller's probe made of the models in use; None without one.
        worst: the least accuracy of a model in use; with a server it is `accuracy`.
    """

    rounds: int
    accuracy: float
    loss: float
    by_class: tuple[float, ...] = ()
    probed: float | None = None
    worst: float = math.nan


@dataclass(frozen=True)
class Run:
    """A finished federation.

    Attributes:
        params: the deployed model after the last round.
        release: the model that clients get in the end; without a server, that of the curious node.
        models: without a server, the models of all nodes after the last round, stacked; {} with one.
        in_use: the models that were evaluated after the last round.
        not_replayed: why the run counts for nothing, where a call does not follow from what it was given.
        curve: evaluations, the last one after the last round.
        rounds: the rounds that were written down.
        bytes_up, bytes_down: mean bytes per client and round, counted from the tensors on the wire. A failed round
            counts what was sent until it failed.
        seconds: time of the training without evaluation: CPU time of the process on a CPU (wall time on a busy machine
            means little), wall time on a GPU. It is the number of rounds times their median time. A sum would also
            count one-time costs, such as the late start of libraries in the first round and garbage collection.
        peak_bytes: peak memory of one client (`fedarena.federation.client_memory`), the maximum over rounds.
        diverged_at: the round after which a parameter was no longer finite, or in which an upload was too large for a
            secure sum; None for a run that did not diverge.
        why: the reason in a sentence, where it diverged.
        verdicts: how the server treated the participants' uploads, for each round.
        failed: the number of rounds without a result, because too few clients were left for a secure sum.
        warnings: texts of the defense that must be shown beside every number of the run.
    """

    params: Tensors
    curve: tuple[Point, ...]
    rounds: tuple[Round, ...]
    bytes_up: float
    bytes_down: float
    seconds: float
    peak_bytes: int
    diverged_at: int | None
    verdicts: tuple[Verdict, ...] = ()
    failed: int = 0
    warnings: tuple[str, ...] = ()
    why: str = ""
    release: Tensors = field(default_factory=dict)
    not_replayed: str = ""
    models: Tensors = field(default_factory=dict)
    in_use: tuple[Tensors, ...] = ()

    @property
    def accuracy(self) -> float:
        """Accuracy after the last round."""
        return self.curve[-1].accuracy


@dataclass
class Totals:
    """Sums and lists over the rounds of a run.

    Attributes:
        transcripts, verdicts, diagnostics: of the rounds that have them, in order.
        seconds: of each round.
        bytes_up, bytes_down: of all participants together. participants: the sum over rounds.
        failed: rounds that failed.
    """

    transcripts: list[Round] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    diagnostics: list[Tensors] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    bytes_up: float = 0.0
    bytes_down: float = 0.0
    participants: int = 0
    failed: int = 0

    def add(self, result: RoundResult) -> None:
        """Count one more round."""
        self.bytes_up += result.bytes_up
        self.bytes_down += result.bytes_down
        self.participants += result.participants
        self.seconds.append(result.seconds)
        if result.failed:
            self.failed += 1
        else:
            self.diagnostics.append(result.diagnostics)
        if result.verdict is not None:
            self.verdicts.append(result.verdict)
        if result.transcript is not None:
            self.transcripts.append(result.transcript)


def run(
    defense: Defense,
    problem: Problem,
    rng: Rng,
    watch: Container[int] = (),
    progress: Callable[[float], None] = lambda share: None,
    stop: Callable[[Point], bool] = lambda point: False,
    adversary: Adversary | None = None,
    draw: Draw = lambda t, client: None,
    replays: Replays = NO_REPLAYS,
    probe: Probe = lambda models: None,
) -> Run:
    """Train for the scheduled rounds.

    Args:
        watch: rounds to write down in full.
        progress: called with the share of rounds that are done.
        stop: ends the training early after an evaluation (for "rounds until a target").
        adversary: the corrupted clients; None: all clients follow the protocol.
        draw: prescribes the batches of an experiment; by default clients draw as the problem says.
        replays: remembers some calls of the defense, which are replayed in the end.
        probe: measures one more number of the models in use at every evaluation (`Point.probed`).
    """
    schedule = problem.task.schedule
    with generators_of(rng):
        federation = _federation(defense, problem, rng, adversary, draw, replays)
        state = defense.init(problem.init, rng.child("init"), problem.auxiliary)
        curve, totals, diverged_at, why = list[Point](), Totals(), None, ""
        evaluate = partial(_evaluate, federation, probe, curve)
        for t in range(schedule.rounds):
            try:
                result = _play(federation, state, t, t in watch)
            except TooLarge as error:
                if t == 0:  # before the first step no run can have diverged, so the bound is too small
                    raise
                diverged_at, why = t, f"in round {t} an upload was beyond what can be summed: {error}"
                break
            totals.add(result)
            state = result.state
            progress((t + 1) / schedule.rounds)
            if not finite(state.params):
                diverged_at, why = t, f"a parameter was not finite in round {t}"
                break
            due = schedule.eval_every > 0 and ((t + 1) % schedule.eval_every == 0 or federation.adversary.culminates(t))
            if due and stop(evaluate(state)):
                break
        federation.require_asked()
        if not curve or curve[-1].rounds != state.round:
            evaluate(state)
        return _finished(federation, state, tuple(curve), totals, diverged_at, why)


def _play(federation: Federation, state: State, t: int, write: bool) -> RoundResult:
    """One round, with a server or without."""
    if isinstance(federation.defense, Peers):
        return peer_round.play(federation, federation.defense, state, t, write)
    return one_round.play(federation, state, t, write)


def _evaluate(federation: Federation, probe: Probe, curve: list[Point], state: State) -> Point:
    """Add a point to the curve."""
    models = federation.defense.in_use(state, federation.adversary.corrupted)
    accuracies, losses, by_class = zip(*map(federation.problem.evaluate_by_class, models), strict=True)
    of_classes = tuple(map(fmean, zip(*by_class, strict=True)))
    point = Point(
        state.round,
        accuracy=fmean(accuracies),
        loss=fmean(losses),
        by_class=of_classes,
        probed=probe(models),
        worst=min(accuracies),
    )
    curve.append(point)
    return point


def _federation(
    defense: Defense, problem: Problem, rng: Rng, adversary: Adversary | None, draw: Draw, replays: Replays
) -> Federation:
    freed_memory.keep()  # rounds make the same large tensors again and again
    clients = adversary or NoAdversary()
    return Federation(
        defense=defense,
        problem=problem,
        rng=rng,
        adversary=clients,
        draw=draw,
        peak=None if clients.simulated else PeakMemory(problem.task.schedule.client_memory),
        replays=replays,
    )


def untrained(problem: Problem) -> Run:
    """A run without any round, for an attack that cannot start."""
    accuracy, loss = problem.evaluate(problem.init)
    return Run(
        params=problem.init,
        in_use=(problem.init,),
        curve=(Point(0, accuracy=accuracy, loss=loss),),
        rounds=(),
        bytes_up=0.0,
        bytes_down=0.0,
        seconds=0.0,
        peak_bytes=0,
        diverged_at=None,
    )


def _finished(
    federation: Federation,
    state: State,
    curve: tuple[Point, ...],
    totals: Totals,
    diverged_at: int | None,
    why: str,
) -> Run:
    defense, participants = federation.defense, max(1, totals.participants)
    warnings = defense.warnings(totals.diagnostics)
    if diverged_at is not None:
        rounds = federation.problem.task.schedule.rounds
        text = f"the run stopped in round {diverged_at}: its numbers are those of {state.round} of {rounds} rounds"
        warnings = (*warnings, text)
    return Run(
        params=defense.deployed(state),
        curve=curve,
        rounds=tuple(totals.transcripts),
        bytes_up=totals.bytes_up / participants,
        bytes_down=totals.bytes_down / participants,
        seconds=len(totals.seconds) * median(totals.seconds) if totals.seconds else 0.0,
        peak_bytes=federation.peak.bytes if federation.peak else 0,
        diverged_at=diverged_at,
        verdicts=tuple(totals.verdicts),
        failed=totals.failed,
        warnings=warnings,
        why=why,
        not_replayed=federation.replays.complaint(federation.problem.device.type),
        release=defense.release(state, federation.rng.child("release")),
        models=defense.models(state) if isinstance(defense, Peers) else {},
        in_use=tuple(defense.in_use(state, federation.adversary.corrupted)),
    )
