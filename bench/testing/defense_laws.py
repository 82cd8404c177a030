"""Laws of protocols."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor

from fedarena.contracts.baseline import BASELINE
from fedarena.contracts.defense import Defense
from fedarena.contracts.observation import Observation, Reading
from fedarena.contracts.transcript import Round, cut
from fedarena.contracts.view import View, seal
from fedarena.core.global_generators import kept_generators
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, row
from fedarena.core.threat import FORMS, PARTIES, VISIBILITY, NotApplicable, Threat
from fedarena.federation import rounds
from fedarena.problem.problem import Problem
from fedarena.problem.task import Batch, Task
from fedarena.testing.federations import defense_of, plainly_trained, problem_for, trained
from fedarena.testing.law import LawBroken, LawIdle, Method, law, once, require
from fedarena.testing.same import copied, difference, same, tensors_in

VICTIMS = (1, 3)
"""The rounds whose samples are attacked."""
NEAR = 1e-4
"""How far two computations of the same upload may lie apart, as a share of its largest number."""
ACTING = 1e-3
"""By how much of its size something that crosses the wires differs from FedAvg's where a defense does something."""
COST = 0.4
"""How much of FedAvg's accuracy a defense may cost, unless a test says less."""


def played(method: Method, **schedule: Any) -> tuple[Problem, Defense, tuple[Round, ...]]:
    """Six rounds of three clients with the protocol, all written down."""
    problem, defense, run = _played(method, **schedule)
    return problem, defense, run.rounds


@once
def _played(method: Method, /, **schedule: Any) -> tuple[Problem, Defense, rounds.Run]:
    problem = problem_for(method, **schedule)
    defense = defense_of(method, problem.task)
    watch = range(problem.task.schedule.rounds)
    return problem, defense, rounds.run(defense, problem, Rng(0).child("federation"), watch=watch)


def most_exact(method: Method) -> Method:
    """The method with float64 for each option that takes it.

    Differences of losses have few digits in float32: two correct forms of them lie apart by rounding alone.
    """
    exact = {f.name: "float64" for f in fields(method.options) if "float64" in (f.metadata.get("choices") or ())}
    return replace(method, options=replace(method.options, **exact))


def _work(problem: Problem, defense: Defense, t: int) -> tuple[list[Batch], list[Tensors]]:
    """The batches and the private randomness of all clients in a round."""
    draws = [(c, Rng(1).child(t, c)) for c in range(len(problem.shards))]
    batches = problem.batches(draws, defense.sampling == "poisson")
    return batches, [defense.draw(rng.child("noise")) for _, rng in draws]


@law("defense")
def client_is_pure(method: Method) -> None:
    """`client` gives the same for the same arguments, changes none of them, and draws from no global generator."""
    problem = problem_for(method, batch_size=2)
    defense = defense_of(method, problem.task)
    down = defense.broadcast(defense.init(problem.init, Rng(0), problem.auxiliary), Rng(0)).down
    (batch, *_), (noise, *_) = _work(problem, defense, 0)
    given = (down, batch.x, batch.y, noise)
    before, found = copied(given), []
    for seed in (0, 1):
        with kept_generators():
            torch.manual_seed(seed)
            found.append(defense.checked_client(down, batch, {}, noise))
    require(same(given, before), "an argument of `client` changed in place", "return new tensors")
    away = difference(found[0][0], found[1][0])
    figure = f"two calls of `client` with the same arguments differ by {away:.3g} of the upload's size"
    require(same(*found), figure, "draw in `draw`, whose result is the argument noise, and keep nothing in self")


@law("defense")
def clients_are_client(method: Method) -> None:
    """`clients`, for all clients at once, gives what `client` gives one by one, over two rounds with memories."""
    method = most_exact(method)
    problem = problem_for(method, batch_size=2)
    defense = defense_of(method, problem.task)
    down = defense.broadcast(defense.init(problem.init, Rng(0), problem.auxiliary), Rng(0)).down
    fast: list[Tensors] = [{} for _ in problem.shards]
    plain = list(fast)
    for t in range(2):
        batches, noises = _work(problem, defense, t)
        ups, fast = defense.clients(down, batches, fast, noises)
        for c, (batch, noise) in enumerate(zip(batches, noises, strict=True)):
            up, plain[c] = defense.checked_client(down, batch, plain[c], noise)
            for what, a, b in (("upload", row(ups, c), up), ("memory", fast[c], plain[c])):
                away = difference(a, b)
                figure = f"in round {t} the {what} of client {c} differs by {away:.3g} of its size, allowed: {NEAR:g}"
                require(away <= NEAR, figure, "leave `clients` out of the class, which then runs `client`")


@law("defense")
def runs_repeat(method: Method) -> None:
    """Two runs of the same seed give the same model."""
    problem = problem_for(method)
    again = rounds.run(defense_of(method, problem.task), problem, Rng(0).child("federation")).params
    first = _played(method)[2].params
    away = difference(first, again)
    require(same(first, again), f"two runs differ by {away:.3g} of the model's size", "draw from the given rng alone")


@law("defense")
def simulation_hits_target(method: Method) -> None:
    """In the adaptive form, `simulate` of the true samples gives what the server saw of one client's upload.

    It does so in the first round, and in a later one unless the defense says what clients keep (`undisclosed`).
    """
    problem, defense, written = played(method)
    threat, later = Threat("server", "adaptive"), len(written) - 1
    given = defense.readings(threat, cut(written, threat), (0, later))
    if isinstance(given, NotApplicable):
        raise LawIdle(f"it gives the server nothing to read: {given.reason}")
    if defense.draw(Rng(0)):
        raise LawIdle("clients draw noise (`draw`), which nobody else can simulate")
    if not given:
        raise LawIdle("it gives the server no reading")
    ones = {o.round: o for o in reversed(given[0].observations) if len(o.clients) == 1}
    if not ones:
        raise LawIdle("no observation is of one client alone")
    remedies = {0: "let `simulate` do what a client does"}
    if not defense.undisclosed:
        remedies[later] = "let `simulate` do what a client does, or say in `undisclosed` what clients remember"
    for t, remedy in remedies.items():
        if t in ones:
            _hits(problem, written[t], ones[t], remedy)


def _hits(problem: Problem, played: Round, seen: Observation, remedy: str) -> None:
    (client,) = seen.clients
    x, y = played.batches[played.participants.index(client)].images()
    labels = torch.nn.functional.one_hot(y, problem.task.n_classes).to(x.dtype)
    away = difference(dict(seen.simulate(x, labels)), dict(seen.target))
    figure = f"`simulate` of the true samples is {away:.3g} of the upload's size away from `target`, allowed: 0.001"
    require(away <= 1e-3, f"in round {seen.round} {figure}", remedy)


@law("defense")
def views_hide_samples(method: Method) -> None:
    """No party's readings hold others' samples, and all can be handed to another process."""
    problem, defense, written = played(method)
    for party in PARTIES:
        for form in FORMS:
            threat = Threat(party, form)
            for view in views(defense, problem, written, threat):
                no_sample_inside(view, problem, written)


def views(defense: Defense, problem: Problem, written: Sequence[Round], threat: Threat) -> list[View]:
    """What an attack would be given of each reading, sealed. Raises LawBroken where it cannot be."""
    readings = defense.readings(threat, cut(written, threat, problem.data_of(threat)), VICTIMS)
    if isinstance(readings, NotApplicable):
        return []
    try:
        return [seal(view_of(problem.task, threat, reading)) for reading in readings]
    except Exception as error:
        wrong = f"a view of the {threat.party} cannot be pickled: {type(error).__name__}: {error}"
        raise LawBroken(wrong, "make `simulate` an object of a dataclass with __call__") from error


def view_of(task: Task, threat: Threat, reading: Reading, own: dict[int, Batch] | None = None) -> View:
    """What an attack is given of a reading, before it is sealed; `own` are the party's own batches by round."""
    return View(
        threat,
        reading=reading.name,
        input_shape=task.input_shape,
        n_classes=task.n_classes,
        observations=reading.observations,
        own=own or {},
    )


def no_sample_inside(view: View, problem: Problem, written: Sequence[Round]) -> None:
    """Raises LawBroken where a view holds a sample that its party must not see."""
    threat = view.threat
    others = [
        x
        for r in written
        for client, batch in zip(r.participants, r.batches, strict=True)
        if client != threat.client or not VISIBILITY[threat.party].own
        for x in batch.images()[0]
    ]
    if problem.auxiliary is not None and threat.party != "server":
        others += list(problem.auxiliary.images()[0])
    tensors = tensors_in(view)
    found = sum(among(tensors, x) for x in others)
    figure = f"the view of the {threat.party} ({threat.form}) holds {found} of {len(others)} samples of others"
    require(found == 0, figure, "give `simulate` the candidates alone, and nothing of a batch")


def holds(view: View, secret: Tensor) -> bool:
    """Whether a tensor of the view, or a row of one, is the secret."""
    return among(tensors_in(view), secret)


def among(tensors: Sequence[Tensor], secret: Tensor) -> bool:
    """Whether one of the tensors, or a row of one, is the secret."""
    flat = secret.flatten().double()

    def matches(t: Tensor) -> bool:
        if t.numel() < flat.numel() or t.numel() % flat.numel():
            return False
        parts = t.double().reshape(-1, flat.numel())
        return bool(((parts - flat).abs().max(1).values < 1e-9).any())

    return any(matches(t) for t in tensors if t.dtype.is_floating_point)


@law("defense")
def defense_acts(method: Method) -> None:
    """A defense changes what crosses the wires in the first round, beside FedAvg; or the model."""
    if method.card.name == BASELINE:
        raise LawIdle("it is what defenses are compared with")
    wire_differs(trained(method), plainly_trained(dict(method.card.usual).get("loss", "cross-entropy")))


def wire_differs(run: rounds.Run, plain: rounds.Run) -> None:
    """Raises LawBroken where broadcasts and uploads of the first round, and the model, are those of the plain run."""
    one, other = run.rounds[0], plain.rounds[0]
    parts = ((one.down, other.down), (one.ups, other.ups), (run.params, plain.params))
    away = max(difference(a, b) for a, b in parts)
    figure = f"the first broadcast, the first uploads and the model are FedAvg's but for {away:.1g} of their size"
    require(away > ACTING, figure, "let it do something")


@law("defense")
def defense_learns(method: Method) -> None:
    """With twenty honest clients the model keeps at least half of FedAvg's accuracy."""
    plain = plainly_trained(dict(method.card.usual).get("loss", "cross-entropy"))
    accuracy_kept(trained(method), plain, COST)


def accuracy_kept(run: rounds.Run, plain: rounds.Run, cost: float) -> None:
    """Raises LawBroken where a run's accuracy is below the plain one's by `cost` or more."""
    figure = f"the accuracy is {run.accuracy:.0%} where FedAvg has {plain.accuracy:.0%}, allowed: {cost:.0%} less"
    require(run.accuracy > plain.accuracy - cost, figure, "send what the server can learn from, at FedAvg's step size")
