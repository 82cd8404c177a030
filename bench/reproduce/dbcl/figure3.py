"""DBCL, Figure 3: how well a client estimates W_t − W_{t+1} from what it receives, without and with a smoother.

Paper (Section 6.3): with options I (Δ̂ from W̃ Sᵀ) and II (from W̃ S†), the error ‖Δ̂ − Δ‖/‖Δ‖ is far
above 1 and the cosine about 0, "which means our defense works". Setting: MNIST, 784-200-200-10, 100 clients
IID, c = 10 %, one local epoch, batch 10, s = d_in/2. A figure without numbers; the smoother is not in it.

Here every client that was sampled in two consecutive rounds is an attacker in turn, with the rounds in
which it was sampled and no others. Medians are over all such pairs (client, round), over the sketched
parameters taken as one vector. Clients are alike here (IID), so that a client's own upload says much about those of the
others. The control `own upload` shows how much; only the excess comes from the sketches.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from statistics import median

from fedarena.contracts.transcript import Round, Seen, cut
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, scale
from fedarena.core.threat import Threat
from fedarena.defenses.dbcl.protocol import DBCL
from fedarena.defenses.dbcl.update_estimate import (
    PSEUDO_INVERSE,
    SMOOTHER,
    TRANSPOSE,
    difference,
    hidden_update,
    smoothed,
)
from fedarena.federation import rounds as federation
from fedarena.goals.metrics.reconstruction import estimate_metrics
from fedarena.problem.problem import build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress
from fedarena.reproduce.published import Published
from fedarena.reproduce.table import Row, Table, measured_by_name

SETTING = (
    "median cosine and relative L2 error of the client's estimate of the hidden layers' update; "
    "s = d_in/2, iid; attackers see only the rounds in which they were sampled"
)
OWN = "own upload"
"""The control is an attacker that assumes all clients to be like itself, and guesses step·Γ_own Sᵀ."""
PAPER = {
    TRANSPOSE: ("about 0", "far above 1"),
    PSEUDO_INVERSE: ("about 0", "far above 1"),
    OWN: (None, None),
    SMOOTHER: (None, None),
}


@dataclass(frozen=True)
class Case:
    """One federation to attack."""

    title: str
    dataset: str
    widths: str
    clients: int
    schedule: Schedule
    hash_name: str = "countsketch"


_SGD = Schedule(rounds=60, batch_size=64, lr=0.1)
_LOCAL = Schedule(rounds=60, batch_size=10, lr=0.1, local_epochs=1, participation=0.1)

CASES = (
    Case(
        title="digits, FedSGD, 2 clients",
        dataset="digits",
        widths="64",
        clients=2,
        schedule=replace(_SGD, batch_size=32),
    ),
    Case(title="MNIST, FedSGD, 2 clients", dataset="mnist", widths="200", clients=2, schedule=_SGD),
    Case(
        title="MNIST, FedSGD, 2 clients, 20 rounds",
        dataset="mnist",
        widths="200",
        clients=2,
        schedule=replace(_SGD, rounds=20),
    ),
    Case(
        title="MNIST, FedSGD, 2 clients, balanced hash",
        dataset="mnist",
        widths="200",
        clients=2,
        schedule=_SGD,
        hash_name="balanced",
    ),
    Case(
        title="MNIST, FedSGD, 2 clients, server Adam",
        dataset="mnist",
        widths="200",
        clients=2,
        schedule=replace(_SGD, lr=0.001, server_optimizer="adam"),
    ),
    Case(
        title="MNIST, FedSGD, 20 clients, c = 50 %",
        dataset="mnist",
        widths="200",
        clients=20,
        schedule=replace(_SGD, participation=0.5),
    ),
    Case(
        title="MNIST, FedAvg, 100 clients, c = 10 % (the paper's)",
        dataset="mnist",
        widths="200,200",
        clients=100,
        schedule=_LOCAL,
    ),
    Case(
        title="MNIST, FedAvg, 100 clients, c = 10 %, local Adam, balanced hash (the authors' code)",
        dataset="mnist",
        widths="200,200",
        clients=100,
        schedule=replace(_LOCAL, lr=0.001, client_optimizer="adam"),
        hash_name="balanced",
    ),
)

ABOUT_0, FAR_ABOVE_1 = (-0.05, 0.05), (2.0, float("inf"))
"""The bounds that the figure's words are taken to mean."""
PUBLISHED = tuple(
    published
    for case in CASES[-2:]  # the paper's federation
    for name, (cosine, error) in PAPER.items()
    if cosine and error
    for published in (
        Published(
            piece=case.title, paper=cosine, column="cosine", row=(("estimator", name),), better="", within=ABOUT_0
        ),
        Published(
            piece=case.title,
            paper=error,
            column="error",
            row=(("estimator", name),),
            share=False,
            better="",
            within=FAR_ABOVE_1,
        ),
    )
)


def measure(case: Case, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """Train one federation, then estimate every update that a client can attack."""
    model = registry.find("model", "mlp").parse({"widths": case.widths})
    partition = registry.find("partition", "iid").parse({})
    spec = ProblemSpec(
        dataset=case.dataset,
        model="mlp",
        partition="iid",
        clients=case.clients,
        model_options=model,
        partition_options=partition,
        schedule=case.schedule,
    )
    problem = build(spec, seed, machine.data_dir, machine.device)
    defense: DBCL = registry.find("defense", "dbcl").load()(
        registry.find("defense", "dbcl").parse({"hash": case.hash_name}), problem.task
    )
    run = federation.run(
        defense,
        problem,
        Rng(seed).child("federation"),
        watch=range(case.schedule.rounds),
        progress=lambda share: progress(0.5 * share, "training"),
    )
    scores: dict[str, list[dict[str, float]]] = {name: [] for name in PAPER}
    seconds = dict.fromkeys(PAPER, 0.0)
    for client in range(case.clients):
        progress(0.5 + 0.5 * client / case.clients, "estimating")
        _attack(defense, run.rounds, Threat("client", "adaptive", client), scores, seconds)
    return [
        {
            "federation": case.title,
            "estimator": name,
            "paper_cosine": PAPER[name][0],
            "cosine": median(s["cosine"] for s in scores[name]) if scores[name] else None,
            "paper_error": PAPER[name][1],
            "error": median(s["relative_l2"] for s in scores[name]) if scores[name] else None,
            "estimates": len(scores[name]),
            "accuracy": run.accuracy,
            "cpu_seconds": seconds[name],
        }
        for name in PAPER
    ]


def _own(defense: DBCL, now: Seen) -> Tensors:
    assert now.own_up is not None
    return scale(defense.task.schedule.step_size, defense.wire.expand(now.own_up, defense.wire.open(now.down)[1]))


def _attack(
    defense: DBCL,
    rounds: tuple[Round, ...],
    threat: Threat,
    scores: dict[str, list[dict[str, float]]],
    seconds: dict[str, float],
) -> None:
    """One client's estimates of all the updates between its consecutive rounds, scored by the truth."""
    seen, written = cut(rounds, threat), {r.index: r for r in rounds}
    pairs = [t for t in seen if t + 1 in seen]
    if not pairs:
        return

    def estimates(name: str) -> list[Tensors]:
        if name == SMOOTHER:
            moves = smoothed(defense, defense.wire, threat, seen, pairs)
            return [hidden_update(defense.wire, seen[t], moves[t]) for t in pairs]
        if name == OWN:
            return [_own(defense, seen[t]) for t in pairs]
        return [difference(defense.wire, seen[t], seen[t + 1], name) for t in pairs]

    for name in scores:
        began = time.process_time()
        estimated = estimates(name)
        seconds[name] += time.process_time() - began
        for t, estimate in zip(pairs, estimated, strict=True):
            hidden = {n: estimate[n] for n in defense.wire.shapes}
            truth = {n: written[t].params[n] - written[t].after[n] for n in defense.wire.shapes}
            scores[name].append(estimate_metrics(hidden, truth))


BY_TITLE = {case.title: case for case in CASES}
TABLE = Table(setting=SETTING, pieces=tuple(BY_TITLE), rows=measured_by_name(BY_TITLE, measure), published=PUBLISHED)
