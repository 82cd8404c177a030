"""ByzFL (LPD-EPFL/byzfl): the worst-case test accuracies of its benchmark's example on MNIST, rows γ = 0 and γ = 1.

The library's documentation shows two heat maps, of the trimmed mean and of the geometric median behind clipping and
nearest neighbour mixing (docs/_static/plots_example/TM_test_heatmap.png and GM_test_heatmap.png, configuration in
docs/fed_framework/classes/benchmark.rst). A cell is the lowest of three attacks' accuracies. Each of these is the
best of all evaluations on the test set (evaluate_results.py, test_heatmap: `np.max`). The test set so decides when the
training stops, and an attack that wins late is not seen. Here the accuracy after the last round, and the lowest one,
stand beside the best.

As in the code: 10 honest clients, f Byzantine ones that hold no data, 800 steps, batches of 25, η = 0.1 with weight
decay 0.0001 on the server, client momentum m ← 0.9·m + 0.1·g, clipping to 2, cross-entropy, an evaluation after every
50 steps. A share γ of the data is alike for all clients, the rest sorted by class. The server knows f.
"""

from __future__ import annotations

from dataclasses import dataclass

from fedarena.core import registry
from fedarena.core.threat import Threat
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress
from fedarena.reproduce.published import Published
from fedarena.reproduce.table import Row, Table, measured_by_name, without_result
from fedarena.runs.trial import prepare

SETTING = (
    "test accuracy on MNIST, CNN, 10 honest clients and f Byzantine ones, clipping and NNM before the rule, batch 25, "
    "η = 0.1, momentum 0.9, 800 steps; best, last and lowest of the evaluations after every 50 steps, all of which are "
    "under attack; settled: the lowest of those beyond the first 200"
)
HONEST, STEPS, EVERY, SETTLED = 10, 800, 50, 200
MEASURED = ("best", "best_at", "last", "lowest", "settled", "cpu_seconds")
"""The columns that `measure` adds to a row's setting."""

PAPER = {
    0.0: {"TrMean": (0.87, 0.61, 0.26, 0.21), "GeometricMedian": (0.87, 0.56, 0.26, 0.27)},
    1.0: {"TrMean": (0.98, 0.98, 0.98, 0.98), "GeometricMedian": (0.98, 0.98, 0.98, 0.97)},
}
"""γ → rule → the accuracies with 1, 2, 3 and 4 Byzantine clients."""
RULES: dict[str, tuple[str, dict[str, str]]] = {
    "TrMean": ("clipping+nnm+trimmed-mean", {"clipping.c": "2"}),
    "GeometricMedian": (
        "clipping+nnm+geometric-median",
        {"clipping.c": "2", "geometric-median.iterations": "3", "geometric-median.eps": "0.1"},
    ),
}
"""The library's name of a rule → ours, with its options."""
ATTACKS: dict[str, tuple[str, dict[str, str]]] = {
    "sign-flip": ("ipm", {"epsilon": "1"}),
    "Opt-IPM": ("opt-ipm", {"evaluations": "20", "delta": "10", "ratio": "0.8"}),
    "Opt-ALIE": ("opt-alie", {"evaluations": "20", "delta": "10", "ratio": "0.8"}),
}
"""The library's attacks → ours, with their options. Its SignFlipping sends −1 times the mean of the honest uploads."""

NOTES = (
    "The library's number is the best of all evaluations on the test set, of the mean over three seeds. With several "
    "seeds ours is the mean of each seed's best, which is no less.",
    "A cell is the lowest of three attacks. The columns `last`, `lowest` and `settled` have no published number.",
    "The library's clients share 48,000 images out, since a fifth of the training set is kept for validation, and take "
    "their batches in a new order each epoch. Ours share all 60,000, and draw each batch by itself.",
    "The library's geometric median takes three steps from 0. Ours takes three from weights of its own, and so comes "
    "nearer to where these steps end.",
    "The library's initial weights change with the seed, the shards do not. Here both change.",
)


@dataclass(frozen=True)
class Experiment:
    """One run of the attacked federation.

    Attributes:
        rule, attack: as `RULES` and `ATTACKS` call them.
        similarity: γ.
        byzantine: f.
    """

    rule: str
    attack: str
    similarity: float
    byzantine: int

    @property
    def name(self) -> str:
        """The name by which `--only` selects it."""
        return f"gamma={self.similarity:g}, {self.rule}, f={self.byzantine}, {self.attack}"

    def group(self, machine: Machine, seed: int) -> GroupSpec:
        """The training run."""
        schedule = Schedule(
            rounds=STEPS,
            batch_size=25,
            lr=0.1,
            client_optimizer="momentum",
            momentum=0.9,
            momentum_form="ema",
            weight_decay=1e-4,
            eval_every=EVERY,
        )
        share = {"share": f"{self.similarity:g}"}
        problem = ProblemSpec(
            "mnist",
            model="cnn-pooled",
            partition="similarity",
            clients=HONEST + self.byzantine,
            model_options=registry.find("model", "cnn-pooled").parse({}),
            partition_options=registry.find("partition", "similarity").parse(share),
            schedule=schedule,
            corrupted=self.byzantine,
            corrupted_data="resampled",
        )
        return GroupSpec(
            problem=problem,
            defense=compose.parse_defense(*RULES[self.rule]),
            attack=compose.parse_attack(*ATTACKS[self.attack]),
            threats=(Threat("client", "paper", knows="omniscient"),),
            seed=seed,
            device=machine.device,
            data_dir=machine.data_dir,
        )


EXPERIMENTS = [
    Experiment(rule=rule, attack=attack, similarity=similarity, byzantine=byzantine)
    for similarity, by_rule in PAPER.items()
    for rule in by_rule
    for byzantine in (1, 2, 3, 4)
    for attack in ATTACKS
]


def measure(experiment: Experiment, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """The row of a run for one seed."""
    record = prepare(experiment.group(machine, seed), progress)[0].record
    row: Row = {
        "γ": experiment.similarity,
        "rule": experiment.rule,
        "f": experiment.byzantine,
        "attack": experiment.attack,
    }
    if record["status"] != "ok":
        return [without_result(row, MEASURED, record)]
    curve = {rounds: accuracy for rounds, accuracy, _ in record["attacked"]["curve"] if rounds}
    best = max(curve, key=lambda rounds: curve[rounds])
    return [
        row
        | {
            "best": curve[best],
            "best_at": best,
            "last": curve[max(curve)],
            "lowest": min(curve.values()),
            "settled": min((curve[rounds] for rounds in curve if rounds > SETTLED), default=curve[max(curve)]),
            "cpu_seconds": record["cost"]["seconds"],
        }
    ]


def published(rule: str, similarity: float, byzantine: int, paper: float) -> Published:
    """The number of a cell, which its attacks' runs measure."""
    runs = [Experiment(rule, attack, similarity, byzantine).name for attack in ATTACKS]
    return Published(
        piece=runs[0],
        paper=paper,
        column="best",
        better="",
        remark="the worst of three attacks",
        source="library's heat map",
        least_of=tuple(runs[1:]),
    )


BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS}
TABLE = Table(
    setting=SETTING,
    pieces=tuple(BY_NAME),
    rows=measured_by_name(BY_NAME, measure),
    measured=MEASURED,
    published=tuple(
        published(rule, similarity, byzantine, paper)
        for similarity, by_rule in PAPER.items()
        for rule, papers in by_rule.items()
        for byzantine, paper in enumerate(papers, 1)
    ),
    notes=NOTES,
)
