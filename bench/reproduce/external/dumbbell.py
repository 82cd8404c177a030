"""ClippedGossip (He, Karimireddy & Jaggi 2022): robust mixing on a dumbbell, two cliques of ten nodes and one edge.

MNIST without corrupted nodes, on uniform shards and on shards of which one clique holds the digits 0 to 4 and the other
5 to 9. Every run's accuracies are in the authors' repository (epfml/byzantine-robust-decentralized-optimizer,
outputs/dumbbell/exp/acc.csv): of the mean model of all nodes, and of the mean model of each clique.

As in the code: η = 0.01, momentum m ← 0.9·m + g, batches of 32, 900 rounds, and a node steps before it mixes. TM trims
one value at each end, GM takes 8 steps with ν = 0.1. What acc.csv calls iteration t is the state after t + 30 of them.
Beside 900 rounds stand 300 of the same run. What nodes reach with their own models, which theirs does not tell, stands
beside it.

A node holds the 960 samples alone that it trains on in the code. Runs `as in the code` have what repeats there
(`repeated_batches.py`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, stack
from fedarena.federation import compose, rounds
from fedarena.federation.spec import MethodSpec
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.reproduce.external.repeated_batches import REPEATS, SAMPLES, RepeatedBatches
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress
from fedarena.reproduce.published import Cause, Published
from fedarena.reproduce.table import Row, Table, measured_by_name

CLIQUE, BATCH = 10, 32
ROUNDS, EVERY = 900, 300
"""The length of a run, and the rounds between evaluations."""
AFTER = (300, 900)
"""The rounds after which numbers are compared."""
SETTING = (
    f"test accuracy on MNIST, CNN with dropout, dumbbell of 10 + 10 nodes of {SAMPLES} samples, none corrupted, batch "
    f"{BATCH}, η = 0.01, β = 0.9"
)
MODELS = ("all nodes", "clique 1", "clique 2")
"""The columns with the accuracies of mean models."""
MEASURED = (*MODELS, "own", "worst", "cpu_seconds")
"""The columns that `measure` adds to a row's setting; the CPU seconds are those of the whole run."""

SHARDS: dict[str, tuple[str, dict[str, str]]] = {
    "iid": ("few", {"samples": str(SAMPLES)}),
    "cliques": ("class-groups", {"groups": "2", "samples": str(SAMPLES)}),
}
"""Name → the partition, with its options."""
MIXING: dict[str, tuple[str, dict[str, dict[str, str]]]] = {
    "Gossip": ("d-sgd", {}),
    "SCClip τ = 1": ("d-sgd", {"d-sgd": {"clip": "1"}}),
    "GM": ("d-sgd+geometric-median", {"geometric-median": {"iterations": "8", "eps": "0.1"}}),
    "TM": ("d-sgd+trimmed-mean", {}),
}
"""The code's name of the mixing → ours, with the options of its parts."""

PAPER = {
    ("iid", "Gossip", 300): (95.60, 95.03, 95.44),
    ("iid", "Gossip", 900): (96.43, 96.36, 96.44),
    ("iid", "SCClip τ = 1", 300): (95.52, 95.16, 95.47),
    ("iid", "SCClip τ = 1", 900): (96.40, 96.30, 96.43),
    ("iid", "GM", 300): (95.07, 93.77, 94.94),
    ("iid", "GM", 900): (95.67, 95.56, 95.63),
    ("iid", "TM", 300): (95.16, 93.93, 95.23),
    ("iid", "TM", 900): (95.40, 95.36, 95.46),
    ("cliques", "Gossip", 300): (90.69, 55.71, 54.38),
    ("cliques", "Gossip", 900): (93.65, 69.01, 75.61),
    ("cliques", "SCClip τ = 1", 300): (90.89, 55.71, 50.13),
    ("cliques", "SCClip τ = 1", 900): (93.77, 71.36, 72.64),
    ("cliques", "GM", 300): (87.03, 50.61, 46.93),
    ("cliques", "GM", 900): (88.64, 50.69, 47.25),
    ("cliques", "TM", 300): (85.11, 50.64, 46.78),
    ("cliques", "TM", 900): (86.90, 50.73, 47.28),
}
"""(shards, mixing, rounds) → accuracy in percent of the mean model of all nodes, of clique 1 and of clique 2."""
NOTES = (
    "The code weighs every edge by 1/11, ours by Metropolis: 1/10 within a clique, and 1/11 on the edges of the two "
    "nodes between cliques. Both have the spectral gap .0154, since the slowest mode is the same.",
    "In the code the order of samples and the masks of dropout repeat. Here both are drawn anew, except in "
    "runs as in the code. The code leaves out the last 16 of the 10,000 test images.",
    "The code's geometric median takes its eight steps from 0. Ours takes eight from weights of its own.",
    "The code has one seed. Its numbers after 300 and after 900 rounds are those of one run, as ours are.",
    "`own` and `worst` are the mean and the least accuracy of the nodes' own models, which the code does not print.",
)


@dataclass(frozen=True)
class Experiment:
    """One run.

    Attributes:
        shards, mixing: names in `SHARDS` and `MIXING`.
        repeats: whether batches and the units that dropout leaves out repeat as in the code; else both are drawn anew.
    """

    shards: str
    mixing: str
    repeats: bool = False

    @property
    def name(self) -> str:
        """The name by which `--only` selects it."""
        return f"{self.shards}, {self.mixing}" + ", as in the code" * self.repeats

    @property
    def problem(self) -> ProblemSpec:
        """Data, model and training."""
        partition, options = SHARDS[self.shards]
        return ProblemSpec(
            "mnist",
            model="cnn-bucketing",
            partition=partition,
            clients=2 * CLIQUE,
            assumed_corrupted=1,
            model_options=registry.find("model", "cnn-bucketing").parse({}),
            partition_options=registry.find("partition", partition).parse(options),
            schedule=Schedule(
                rounds=ROUNDS,
                batch_size=BATCH,
                lr=0.01,
                client_optimizer="momentum",
                momentum=0.9,
                eval_every=EVERY,
            ),
        )

    @property
    def defense(self) -> MethodSpec:
        """The protocol."""
        name, parts = MIXING[self.mixing]
        own = {**parts, "d-sgd": {"graph": "dumbbell", **parts.get("d-sgd", {})}}
        return compose.parse(compose.defense_cards(name), {}, own)


def measure(experiment: Experiment, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """The rows of a run for one seed, one for each evaluation."""
    began = time.process_time()
    problem = build(experiment.problem, seed, machine.data_dir, machine.device)
    protocol = compose.make_defense(experiment.defense, problem.task)
    rng, means = Rng(seed).child("federation"), list[list[float]]()
    repeated = RepeatedBatches.of(problem, problem.shards, rng)
    run = rounds.run(
        protocol,
        problem,
        rng,
        draw=repeated if experiment.repeats else lambda t, client: None,
        progress=lambda share: progress(share, f"{share * experiment.problem.schedule.rounds:.0f} rounds"),
        probe=lambda models: means.append(accuracies(problem, models)),
    )
    spent = time.process_time() - began
    return [
        {"shards": experiment.shards, "mixing": experiment.mixing, "rounds": point.rounds}
        | ({"batches and masks": "repeat"} if experiment.repeats else {})
        | dict(zip(MODELS, of_means, strict=True))
        | {"own": point.accuracy, "worst": point.worst, "cpu_seconds": spent}
        for point, of_means in zip(run.curve, means, strict=True)
    ]


def accuracies(problem: Problem, models: Sequence[Tensors]) -> list[float]:
    """Of the mean model of all nodes, of the first half of them and of the second one.

    Args:
        models: of the nodes in order; node i is in clique 1 for i < n/2.
    """
    half = len(models) // 2

    def of(nodes: Sequence[Tensors]) -> float:
        return problem.evaluate({name: t.mean(0) for name, t in stack(nodes).items()})[0]

    return [of(models), of(models[:half]), of(models[half:])]


def published(experiment: Experiment, after: int, numbers: Sequence[float]) -> tuple[Published, ...]:
    """The numbers of a run after some rounds."""
    as_in_the_code = replace(experiment, repeats=True).name
    shown = not experiment.repeats and as_in_the_code in BY_NAME
    return tuple(
        Published(
            piece=experiment.name,
            paper=round(number / 100, 4),
            column=column,
            row=(("rounds", after),),
            decimals=4,
            better="",
            source="authors' run",
            causes=(Cause(REPEATS, as_in_the_code),) if shown else (),
        )
        for column, number in zip(MODELS, numbers, strict=True)
    )


EXPERIMENTS = [Experiment(shards, mixing) for shards in SHARDS for mixing in MIXING]
AS_IN_THE_CODE = [Experiment("cliques", mixing, repeats=True) for mixing in ("Gossip", "SCClip τ = 1")]
BY_NAME = {one.name: one for one in (*EXPERIMENTS, *AS_IN_THE_CODE)}
TABLE = Table(
    setting=SETTING,
    pieces=tuple(BY_NAME),
    rows=measured_by_name(BY_NAME, measure),
    measured=MEASURED,
    published=tuple(
        one
        for experiment in BY_NAME.values()
        for after in AFTER
        for one in published(experiment, after, PAPER[experiment.shards, experiment.mixing, after])
    ),
    notes=NOTES,
)
