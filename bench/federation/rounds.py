"""The loop over rounds around a defense's pure functions."""

from __future__ import annotations

import time
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from functools import partial
from statistics import median

import torch

from fedarena.contracts.defense import Cohort, Defense, State
from fedarena.contracts.secure_sum import TooFewSurvivors, TooLarge
from fedarena.contracts.transcript import Round, weights
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, finite, nbytes, to
from fedarena.federation.adversary import Adversary
from fedarena.federation.client_memory import client_peak
from fedarena.federation.secure_aggregation import sum_up
from fedarena.problem.batch import Batch
from fedarena.problem.problem import Problem


@dataclass(frozen=True)
class Point:
    """The deployed model after `rounds` rounds, on held-out data."""

    rounds: int
    accuracy: float
    loss: float


@dataclass(frozen=True)
class Verdict:
    """What the server made of each upload of a round: values by name, in the order of `clients`."""

    clients: tuple[int, ...]
    values: dict[str, tuple[float, ...]]


@dataclass(frozen=True)
class Run:
    """A finished federation.

    Attributes:
        params: the deployed model after the last round.
        release: the model that clients are given in the end.
        curve: evaluations, the last one after the last round.
        rounds: the rounds that were written down.
        bytes_up, bytes_down: mean bytes per client and round, counted from the tensors that crossed; of a round that
            failed what had crossed by then.
        seconds: time of the training, evaluation left out: CPU time of the process on a CPU (wall time on a busy
            machine says little), wall time on a GPU. It is the number of rounds times the median of what they
            took: a sum would make the first federation of a process look slow, in whose first round libraries start
            what they start late, and whichever one Python collects garbage in.
        peak_bytes: of one client (`fedarena.federation.client_memory`), in the round in which it is most.
        diverged_at: the round after which a parameter was no longer finite, or in which an upload was too large to be
            summed securely, if any.
        why: where it diverged, the reason in a sentence.
        verdicts: per round, what the server made of the participants' uploads.
        failed: rounds that gave nothing, because too few clients were left for a secure sum.
        warnings: what the defense says must stand beside every number of the run.
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

    @property
    def accuracy(self) -> float:
        """Accuracy after the last round."""
        return self.curve[-1].accuracy


def sample_clients(problem: Problem, rng: Rng) -> tuple[int, ...]:
    """⌈c·C⌋ (at least one) clients, uniformly without replacement, in ascending order."""
    total, count = len(problem.shards), problem.task.participants
    return tuple(sorted(torch.randperm(total, generator=rng.torch())[:count].tolist()))


def run(
    defense: Defense,
    problem: Problem,
    rng: Rng,
    watch: Container[int] = (),
    progress: Callable[[float], None] = lambda share: None,
    stop: Callable[[Point], bool] = lambda point: False,
    adversary: Adversary | None = None,
    draw: Callable[[int, int], Batch | None] = lambda t, client: None,
) -> Run:
    """Train for the scheduled rounds.

    Args:
        adversary: the corrupted clients; None: everybody follows the protocol.
        watch: rounds to write down in full.
        progress: told the share of rounds done.
        draw: what a client works on in a round, where an experiment says so; None: it draws as the problem says.
        stop: ends the training early after an evaluation (for "rounds until a target").
    """
    schedule, sizes = problem.task.schedule, problem.task.sizes
    state = defense.init(problem.init, rng.child("init"), problem.auxiliary)
    memories: dict[int, Tensors] = {}
    curve: list[Point] = []
    written: list[Round] = []
    verdicts: list[Verdict] = []
    told: list[Tensors] = []
    up = down = 0.0
    took: list[float] = []
    # What clients were handed, by name, in steps whose memory is known: what they keep may grow for some rounds.
    measured: set[tuple[frozenset[str], frozenset[str]]] = set()
    sent_to, peak, failed, diverged_at, why = 0, 0, 0, None, ""

    def clock() -> float:
        if problem.device.type == "cpu":
            return time.process_time()
        torch.cuda.synchronize(problem.device)
        return time.perf_counter()

    def evaluate(state: State) -> Point:
        curve.append(Point(state.round, *problem.evaluate(defense.deployed(state))))
        return curve[-1]

    for t in range(schedule.rounds):
        clients = sample_clients(problem, rng.child("sample", t))
        usual = partial(_usual, problem, rng, defense.sampling == "poisson")
        batches = [usual(t, c) if (said := draw(t, c)) is None else said for c in clients]
        if adversary is not None:
            batches = [adversary.batch(c, batch, t) for c, batch in zip(clients, batches, strict=True)]
        noises = [to(defense.draw(rng.child("noise", t, c)), problem.device) for c in clients]
        began = clock()
        sent = defense.broadcast(state, rng.child("broadcast", t))
        broadcast = clock() - began
        kept = memories.get(clients[0], {})
        if (handed := (frozenset(sent.down), frozenset(kept))) not in measured:
            measured.add(handed)
            needed = client_peak(defense, sent.down, batches[0], kept, noises[0])
            _fits(schedule.client_memory, needed)
            peak = max(peak, needed)
        began = clock()
        work = [i for i, c in enumerate(clients) if adversary is None or adversary.computes(c)]
        work = work or list(range(len(clients)))  # somebody's upload must show what an upload looks like
        given = [(batches[i], memories.get(clients[i], {}), noises[i]) for i in work]
        ups, after = defense.clients(sent.down, *map(list, zip(*given, strict=True)))
        memories.update(zip((clients[i] for i in work), after, strict=True))
        if adversary is not None:
            ups = adversary.uploads(t, clients, sent.down, ups)
        cohort, received = Cohort(clients, weights(sizes, clients).to(problem.device)), ups
        try:
            corrupted = frozenset() if adversary is None else adversary.corrupted
            secure = defense.secure
            summed = None if secure is None else sum_up(secure, ups, cohort, rng.child("secure", t), corrupted)
        except TooFewSurvivors as lost:
            failed += 1
            up, down = up + lost.bytes_up, down + nbytes(sent.down) * len(clients) + lost.bytes_down
            sent_to += len(clients)
            took.append(broadcast + clock() - began)
            state = defense.skipped(state)
        except TooLarge as error:
            if t == 0:  # nothing has diverged yet: the bound does not fit
                raise
            diverged_at, why = t, f"in round {t} an upload was beyond what can be summed: {error}"
            break
        else:
            if summed is not None:
                received, cohort = summed.received()
            new = defense.aggregate(state, sent, received, cohort, rng.child("aggregate", t))
            took.append(broadcast + clock() - began)
            told.append({**new.verdict, **defense.diagnostics(sent, given[0][0], given[0][2], ups)})
            if new.verdict and summed is None:
                values = {name: tuple(v.double().tolist()) for name, v in new.verdict.items()}
                verdicts.append(Verdict(clients, values))
            up += defense.sent_bytes(ups) if summed is None else summed.bytes_up
            down += nbytes(sent.down) * len(clients) + (0 if summed is None else summed.bytes_down)
            sent_to += len(clients)
            if t in watch:
                written.append(
                    Round(
                        *(t, clients, state.params, new.params, sent.secret, sent.down, ups, tuple(batches)),
                        None if summed is None else summed.wire,
                        None if summed is None else summed.mean,
                        _picked(defense, clients, new.verdict) if summed is None else summed.clients,
                    )
                )
            state = new
        progress((t + 1) / schedule.rounds)
        if not finite(state.params):
            diverged_at, why = t, f"a parameter was not finite in round {t}"
            break
        if _due(schedule.eval_every, t, adversary) and stop(evaluate(state)):
            break
    if not curve or curve[-1].rounds != state.round:
        evaluate(state)
    return Run(
        defense.deployed(state),
        tuple(curve),
        tuple(written),
        up / max(1, sent_to),
        down / max(1, sent_to),
        len(took) * median(took) if took else 0.0,
        peak,
        diverged_at,
        tuple(verdicts),
        failed,
        (*defense.warnings(told), *_stopped(diverged_at, state.round, schedule.rounds)),
        why,
        defense.release(state, rng.child("release")),
    )


def _due(every: int, t: int, adversary: Adversary | None) -> bool:
    """Whether the model is to be looked at after round t: every so often (0: never), and where an attack culminates."""
    return every > 0 and ((t + 1) % every == 0 or (adversary is not None and adversary.attack.culminates(t)))


def _picked(defense: Defense, clients: tuple[int, ...], verdict: Tensors) -> tuple[int, ...]:
    """Whose upload the server steps by; () where it does not step by a single one."""
    return (clients[int(verdict["used"].argmax())],) if defense.picks else ()


def _usual(problem: Problem, rng: Rng, poisson: bool, t: int, client: int) -> Batch:
    """What a client works on in a round."""
    return problem.batch(client, rng.child("batch", t, client), poisson)


def _stopped(diverged_at: int | None, done: int, rounds: int) -> tuple[str, ...]:
    """A mark for a run that diverged: its numbers are those of fewer rounds than another's."""
    if diverged_at is None:
        return ()
    return (f"the run stopped in round {diverged_at}: its numbers are those of {done} of {rounds} rounds",)


def _fits(limit: float | None, needed: int) -> None:
    """Hold a client's step to its memory: what came down, what it kept, its batch, and the peak of what it makes of
    them."""
    if limit is not None and needed > limit * 1e6:
        raise UserError(
            f"option 'client-memory' is {limit:g} MB, but a client's step takes {needed / 1e6:.3f} MB with this "
            "defense, model and batch"
        )


def untrained(problem: Problem) -> Run:
    """No round at all: the run of an attack that cannot start."""
    point = Point(0, *problem.evaluate(problem.init))
    return Run(problem.init, (point,), (), 0.0, 0.0, 0.0, 0, None)
