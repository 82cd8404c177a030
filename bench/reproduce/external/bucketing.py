"""Bucketing (Karimireddy, He & Jaggi, ICLR 2022): MNIST, 25 workers of whom 5 are Byzantine, with and without buckets.

Experiment 2 is the attack `mimic` without momentum, on uniform and on sorted shards. Experiment 3 is five attacks on
sorted shards, with and without the workers' momentum, here for RFA and centered clipping. The authors' repository has
every run's accuracies (epfml/byzantine-robust-noniid-optimizer, outputs/). The numbers are recomputed from them: the
mean of the last five of 20 evaluations, its mean and standard deviation over three seeds.

As in the code: the 20 honest workers share the training set out among them, batches of 32, η = 0.01, 600 rounds, an
evaluation after every 30. RFA takes 8 steps with ν = 0.1, centered clipping 3 steps with τ = 10; buckets are of 2, with
f = 5; `mimic` chooses its victim by the first round; IPM has ε = 0.1. Momentum is m ← 0.9·m + g. Runs `as in the code`
have what repeats there, too (`repeated_batches.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import fmean

import torch

from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.threat import Knowledge, Threat
from fedarena.federation import compose
from fedarena.federation.replay import NO_REPLAYS
from fedarena.federation.spec import GroupSpec
from fedarena.goals.poisoned_run import poisoned_record
from fedarena.problem.problem import build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.records.schema import Record
from fedarena.reproduce.external.repeated_batches import REPEATS, SAMPLES, RepeatedBatches
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress
from fedarena.reproduce.published import Cause, Published, Spread
from fedarena.reproduce.table import Row, Table, measured_by_name, without_result
from fedarena.runs.trial import prepare

SETTING = (
    "test accuracy on MNIST, CNN with dropout, 25 workers, 5 of them Byzantine, batch 32, η = 0.01, 600 rounds; mean "
    "of the last five of 20 evaluations"
)
HONEST, CORRUPTED, ROUNDS, EVALUATIONS, LAST = 20, 5, 600, 20, 5
MEASURED = ("accuracy", "last", "lowest", "best", "cpu_seconds")
"""The columns that `measure` adds to a row's setting."""

RULES: dict[str, tuple[str, dict[str, str]]] = {
    "Avg": ("mean", {}),
    "Krum": ("krum", {}),
    "CM": ("median", {}),
    "RFA": ("geometric-median", {"iterations": "8", "eps": "0.1"}),
    "CClip": ("centered-clipping", {"tau": "10", "iterations": "3"}),
}
"""The paper's name of a rule → ours, with its options."""
ATTACKS: dict[str, tuple[str, dict[str, str], Knowledge]] = {
    "BF": ("sign-flip", {"scale": "1"}, "own"),
    "LF": ("label-flip", {}, "own"),
    "mimic": ("mimic", {"warmup": "1"}, "omniscient"),
    "IPM": ("ipm", {"epsilon": "0.1"}, "omniscient"),
    "ALIE": ("alie", {}, "omniscient"),
}
"""The paper's name of an attack → ours, with its options and what it knows."""

EXPERIMENT_2 = {
    ("Avg", "iid", 0): (93.20, 0.21),
    ("Avg", "iid", 2): (93.17, 0.23),
    ("Avg", "sorted", 0): (92.73, 0.32),
    ("Avg", "sorted", 2): (92.67, 0.27),
    ("Krum", "iid", 0): (90.36, 0.25),
    ("Krum", "iid", 2): (91.64, 0.30),
    ("Krum", "sorted", 0): (37.33, 6.78),
    ("Krum", "sorted", 2): (53.15, 3.96),
    ("CM", "iid", 0): (90.80, 0.12),
    ("CM", "iid", 2): (91.91, 0.24),
    ("CM", "sorted", 0): (64.27, 3.70),
    ("CM", "sorted", 2): (78.60, 3.15),
    ("RFA", "iid", 0): (92.92, 0.25),
    ("RFA", "iid", 2): (93.00, 0.23),
    ("RFA", "sorted", 0): (78.93, 9.27),
    ("RFA", "sorted", 2): (91.17, 0.51),
    ("CClip", "iid", 0): (93.16, 0.22),
    ("CClip", "iid", 2): (93.17, 0.23),
    ("CClip", "sorted", 0): (91.53, 0.06),
    ("CClip", "sorted", 2): (92.56, 0.21),
}
"""Under `mimic`: (rule, shards, size of buckets) → the mean accuracy in percent, and its deviation over three seeds."""
EXPERIMENT_3 = {
    ("RFA", 0.0, 0): {"BF": (68.75, 2.67), "LF": (90.34, 0.84), "IPM": (14.61, 8.48), "ALIE": (79.66, 18.30)},
    ("RFA", 0.0, 2): {"BF": (87.63, 2.40), "LF": (91.60, 0.39), "IPM": (90.60, 0.50), "ALIE": (91.18, 0.51)},
    ("RFA", 0.9, 0): {
        "BF": (82.77, 1.02),
        "LF": (95.77, 0.08),
        "mimic": (85.92, 8.09),
        "IPM": (13.49, 2.36),
        "ALIE": (11.37, 0.00),
    },
    ("RFA", 0.9, 2): {
        "BF": (96.78, 0.28),
        "LF": (97.40, 0.10),
        "mimic": (97.14, 0.45),
        "IPM": (95.90, 0.39),
        "ALIE": (91.66, 10.18),
    },
    ("CClip", 0.0, 0): {"BF": (75.19, 0.26), "LF": (90.93, 0.79), "IPM": (91.82, 0.21), "ALIE": (91.11, 0.45)},
    ("CClip", 0.0, 2): {"BF": (91.66, 0.22), "LF": (91.83, 0.32), "IPM": (92.63, 0.21), "ALIE": (91.26, 0.19)},
    ("CClip", 0.9, 0): {
        "BF": (97.65, 0.13),
        "LF": (97.64, 0.12),
        "mimic": (97.78, 0.16),
        "IPM": (97.63, 0.13),
        "ALIE": (98.04, 0.14),
    },
    ("CClip", 0.9, 2): {
        "BF": (97.68, 0.07),
        "LF": (97.69, 0.12),
        "mimic": (97.82, 0.17),
        "IPM": (97.66, 0.13),
        "ALIE": (98.03, 0.03),
    },
}
"""On sorted shards: (rule, momentum, size of buckets) → attack → the same. Without momentum `mimic` is experiment 2."""

APART = {
    (attack, True): "in the code Byzantine workers send plain gradients where honest ones send momenta"
    for attack in ("BF", "LF")
}
"""(attack, whether workers have momentum) → why the numbers cannot be compared."""
NOTES = (
    "In the code a worker's loader begins anew every 30 rounds with the same order, so that it trains on the same 960 "
    "of its 3,000 samples all the time, and the masks of dropout repeat. Here batches are drawn from all samples, and "
    "masks anew, except in runs as in the code.",
    "Under BF and LF the code's Byzantine workers hold uniform shards, whatever the honest ones hold. Here theirs are "
    "of the same kind as the honest ones'. The other attacks use honest uploads alone.",
    "The code's Krum adds up fourth powers of distances, since it squares the squares; ours adds up squares.",
    "The code's `mimic` attacks in its first round already, and copies the worker with the largest ⟨g, z⟩. Ours "
    "follows the protocol in that round, and takes the largest absolute value.",
)


@dataclass(frozen=True)
class Experiment:
    """One run of the attacked federation.

    Attributes:
        rule, attack: as the paper calls them.
        shards: iid or sorted.
        s: size of buckets; 0: none.
        momentum: β of the workers.
        paper, deviation: the published accuracy in percent, and its deviation over three seeds.
        repeats: whether batches and the units that dropout leaves out repeat as in the code.
    """

    rule: str
    attack: str
    shards: str
    s: int
    momentum: float
    paper: float
    deviation: float
    repeats: bool = False

    @property
    def name(self) -> str:
        """The name by which `--only` selects it."""
        name = f"{self.shards}, {self.rule}, {self.attack}, s = {self.s}, β = {self.momentum:g}"
        return name + ", as in the code" * self.repeats

    @property
    def schedule(self) -> Schedule:
        """The training."""
        plain = {"rounds": ROUNDS, "batch_size": 32, "lr": 0.01, "eval_every": ROUNDS // EVALUATIONS}
        if not self.momentum:
            return Schedule(**plain)  # type: ignore[arg-type]
        return Schedule(**plain, client_optimizer="momentum", momentum=self.momentum)  # type: ignore[arg-type]

    def group(self, machine: Machine, seed: int) -> GroupSpec:
        """The training run."""
        attack, strength, knows = ATTACKS[self.attack]
        rule, options = RULES[self.rule]
        bucketing = {"bucketing": {"s": str(self.s)}} if self.s else {}
        cards = compose.defense_cards(f"bucketing+{rule}" if self.s else rule)
        problem = ProblemSpec(
            "mnist",
            model="cnn-bucketing",
            partition=self.shards,
            clients=HONEST + CORRUPTED,
            model_options=registry.find("model", "cnn-bucketing").parse({}),
            partition_options=registry.find("partition", self.shards).parse({}),
            schedule=self.schedule,
            corrupted=CORRUPTED,
            corrupted_data="resampled",
        )
        return GroupSpec(
            problem=problem,
            defense=compose.parse(cards, {}, {rule: options} | bucketing),
            attack=compose.parse_attack(attack, strength),
            threats=(Threat("client", "paper", knows=knows),),
            seed=seed,
            device=machine.device,
            data_dir=machine.data_dir,
        )


def experiments() -> list[Experiment]:
    """All runs, those of experiment 2 first."""
    second = [
        Experiment(rule=rule, attack="mimic", shards=shards, s=s, momentum=0.0, paper=mean, deviation=deviation)
        for (rule, shards, s), (mean, deviation) in EXPERIMENT_2.items()
    ]
    third = [
        Experiment(rule=rule, attack=attack, shards="sorted", s=s, momentum=beta, paper=mean, deviation=deviation)
        for (rule, beta, s), by_attack in EXPERIMENT_3.items()
        for attack, (mean, deviation) in by_attack.items()
    ]
    repeated = [replace(one, repeats=True) for one in second if one.shards == "sorted"]
    return second + third + repeated


def measure(experiment: Experiment, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """The row of a run for one seed."""
    play = played_as_in_the_code if experiment.repeats else lambda *given: prepare(*given)[0].record
    record = play(experiment.group(machine, seed), progress)
    row: Row = {
        "shards": experiment.shards,
        "rule": experiment.rule,
        "attack": experiment.attack,
        "s": experiment.s,
        "β": experiment.momentum,
    } | ({"batches and masks": "repeat"} if experiment.repeats else {})
    if record["status"] != "ok":
        return [without_result(row, MEASURED, record)]
    accuracies = [accuracy for rounds, accuracy, _ in record["attacked"]["curve"] if rounds]
    return [
        row
        | {
            "accuracy": fmean(accuracies[-LAST:]),
            "last": accuracies[-1],
            "lowest": min(accuracies[-LAST:]),
            "best": max(accuracies),
            "cpu_seconds": record["cost"]["seconds"],
        }
    ]


def played_as_in_the_code(spec: GroupSpec, progress: Progress) -> Record:
    """The record of a run in which batches and masks repeat."""
    problem = build(spec.problem, spec.root, spec.data_dir, spec.device)
    rng = Rng(spec.root).child("repeated")
    orders = [
        shard[torch.randperm(len(shard), generator=rng.child("order", client).torch())[:SAMPLES]]
        for client, shard in enumerate(problem.shards)
    ]
    protocol = compose.make_defense(spec.defense, problem.task)
    return poisoned_record(
        spec, problem, protocol, replays=NO_REPLAYS, progress=progress, draw=RepeatedBatches.of(problem, orders, rng)
    )


def published(experiment: Experiment) -> Published:
    """The number of a run."""
    as_in_the_code = replace(experiment, repeats=True).name
    shown = not experiment.repeats and as_in_the_code in BY_NAME
    return Published(
        piece=experiment.name,
        paper=round(experiment.paper / 100, 4),
        column="accuracy",
        decimals=4,
        better="",
        source="authors' runs",
        apart=APART.get((experiment.attack, experiment.momentum > 0), ""),
        spread=Spread(round(experiment.deviation / 100, 4), seeds=3),
        causes=(Cause(REPEATS, as_in_the_code),) if shown else (),
    )


BY_NAME = {experiment.name: experiment for experiment in experiments()}
TABLE = Table(
    setting=SETTING,
    pieces=tuple(BY_NAME),
    rows=measured_by_name(BY_NAME, measure),
    measured=MEASURED,
    published=tuple(published(experiment) for experiment in BY_NAME.values()),
    notes=NOTES,
)
