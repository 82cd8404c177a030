"""A study with Flower: four rules on Fashion-MNIST under a backdoor, flipped labels and Gaussian models.

The study is a master's thesis (samuele-lolli/Aggregation-Federated-Learning-Analysis, 2025); its tables 14 to 31 stand
in results/tables. Server accuracy is that of the last round's model on the test set. The success of the backdoor is the
share of images of other classes that the trigger turns into class 1.

As in the code: 10 clients, all of them in each of 40 rounds, one local epoch in batches of 32, η = 0.01, momentum 0.9
from 0 in each round, images cropped and mirrored at random. A fifth of each client's data is not trained on. One to
three clients attack, in one of three ways: they stamp 3×3 pixels on 15 % of their images and call them class 1; they
call all of their images class 2; they send the broadcast model with N(0, 0.25) on every parameter. The trimmed mean
leaves out β·n values on either side, Multi-Krum keeps n − f. FedAvg weighs clients by their samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fedarena.core import registry
from fedarena.core.threat import Threat
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress
from fedarena.reproduce.published import Published, Spread
from fedarena.reproduce.table import Row, Table, measured_by_name, without_result
from fedarena.runs.trial import prepare

SETTING = (
    "test accuracy on Fashion-MNIST and success of the backdoor after the last of 40 rounds, CNN, 10 clients, one "
    "local epoch, batch 32, η = 0.01, momentum 0.9, crops and mirrored images"
)
CLIENTS, ROUNDS, TRAINED, REPEATS = 10, 40, 4800, 15
MEASURED = ("accuracy", "success", "cpu_seconds")
"""The columns that `measure` adds to a row's setting."""

RULES = {"FedAvg": "fedavg", "Median": "median", "TrimmedMean": "trimmed-mean", "MultiKrum": "multi-krum"}
"""The study's name of a rule → ours."""
ATTACKS: dict[str, tuple[str, dict[str, str]]] = {
    "backdoor": ("pixel-trigger", {"size": "3", "share": "0.15", "target": "1"}),
    "label flip": ("label-flip", {"labels": "one", "target": "2"}),
    "Gaussian": ("gaussian", {"std": "0.5"}),
}
"""The study's attacks → ours, with their options."""

Cell = tuple[tuple[float, float], ...]
"""(mean, standard deviation) of each rule, in the order of `RULES`."""
Setting = tuple[str, int, float | None]
"""The attack, the number of attackers, and α of Dirichlet(α); None: iid."""

ACCURACY: dict[Setting, Cell] = {
    ("backdoor", 1, None): ((0.869, 0.003), (0.867, 0.002), (0.868, 0.004), (0.869, 0.003)),
    ("backdoor", 1, 0.5): ((0.859, 0.008), (0.847, 0.006), (0.851, 0.004), (0.859, 0.008)),
    ("backdoor", 1, 0.1): ((0.818, 0.021), (0.711, 0.054), (0.746, 0.040), (0.758, 0.028)),
    ("backdoor", 2, None): ((0.868, 0.003), (0.865, 0.003), (0.867, 0.004), (0.867, 0.002)),
    ("backdoor", 2, 0.1): ((0.815, 0.015), (0.705, 0.051), (0.746, 0.041), (0.703, 0.074)),
    ("Gaussian", 2, None): ((0.663, 0.025), (0.867, 0.004), (0.865, 0.003), (0.869, 0.002)),
    ("Gaussian", 2, 0.5): ((0.608, 0.155), (0.842, 0.013), (0.851, 0.010), (0.856, 0.010)),
    ("Gaussian", 2, 0.1): ((0.520, 0.108), (0.695, 0.061), (0.762, 0.044), (0.788, 0.046)),
    ("label flip", 1, None): ((0.842, 0.007), (0.860, 0.004), (0.858, 0.003), (0.869, 0.002)),
    ("label flip", 1, 0.1): ((0.786, 0.037), (0.687, 0.044), (0.747, 0.053), (0.769, 0.048)),
    ("label flip", 2, None): ((0.780, 0.034), (0.835, 0.007), (0.834, 0.008), (0.868, 0.003)),
    ("label flip", 2, 0.5): ((0.772, 0.066), (0.790, 0.030), (0.789, 0.022), (0.855, 0.010)),
    ("label flip", 2, 0.1): ((0.754, 0.058), (0.634, 0.065), (0.666, 0.041), (0.664, 0.094)),
    ("label flip", 3, None): ((0.652, 0.179), (0.793, 0.012), (0.793, 0.010), (0.868, 0.003)),
    ("label flip", 3, 0.1): ((0.691, 0.076), (0.550, 0.096), (0.558, 0.087), (0.437, 0.168)),
}
"""The server's accuracy."""
SUCCESS: dict[Setting, Cell] = {
    ("backdoor", 1, None): ((0.912, 0.054), (0.004, 0.004), (0.004, 0.002), (0.002, 0.000)),
    ("backdoor", 1, 0.5): ((0.797, 0.237), (0.004, 0.002), (0.008, 0.005), (0.099, 0.307)),
    ("backdoor", 1, 0.1): ((0.679, 0.318), (0.025, 0.033), (0.018, 0.019), (0.655, 0.379)),
    ("backdoor", 2, None): ((0.993, 0.009), (0.168, 0.131), (0.389, 0.179), (0.002, 0.000)),
    ("backdoor", 2, 0.1): ((0.969, 0.050), (0.290, 0.174), (0.584, 0.206), (0.761, 0.338)),
}
"""The success of the backdoor."""

NOTES = (
    "The study's success rate is the mean over its clients' validation shares; ours is that on the test set. Its "
    "trigger is in the first corner of an image, ours in the last.",
    "Flipped labels: the study's attackers leave class 9 as it is, which looks like an oversight. Ours call it class "
    "2, too.",
    "The study's clients take the last batch of an epoch, which is not full; ours leave it out.",
    "iid: the study cuts the training set as it is in its file, and trains on 4,800 of a client's 6,000 samples, the "
    "same in every repetition. Here 4,800 random samples a client are drawn for each seed.",
    "Dirichlet: here clients train on all of their data, a fourth more than the study's, and hold at least 32 samples, "
    "which the study does not ask for. As in the study, a client with more than a tenth of all data gets no more.",
    "The study's Multi-Krum weighs the uploads that it keeps by their samples; ours takes their mean.",
    "With one attacker β is 0.1 for flipped labels, and 0.2 for the backdoor, as the code at hand has it.",
)


@dataclass(frozen=True)
class Experiment:
    """One run of the attacked federation.

    Attributes:
        rule, attack: as `RULES` and `ATTACKS` call them.
        attackers: their number.
        alpha: α of Dirichlet(α); None: iid.
    """

    rule: str
    attack: str
    attackers: int
    alpha: float | None

    @property
    def shards(self) -> str:
        """How data are shared out, in a word."""
        return "iid" if self.alpha is None else f"Dir({self.alpha:g})"

    @property
    def name(self) -> str:
        """The name by which `--only` selects it."""
        return f"{self.attack}, {self.attackers} malicious, {self.shards}, {self.rule}"

    @property
    def assumed(self) -> int:
        """The number of attackers that the server assumes: β·n of the trimmed mean, f of Multi-Krum."""
        trims_more = (self.rule, self.attack) == ("TrimmedMean", "backdoor")
        return 2 if trims_more else self.attackers

    @property
    def partition(self) -> tuple[str, dict[str, str]]:
        """The partition and its options."""
        if self.alpha is None:
            return "few", {"samples": str(TRAINED)}
        return "dirichlet", {"alpha": f"{self.alpha:g}", "min_size": "32", "balanced": "true"}

    def group(self, machine: Machine, seed: int) -> GroupSpec:
        """The training run."""
        schedule = Schedule(
            rounds=ROUNDS,
            batch_size=32,
            local_epochs=1,
            lr=0.01,
            client_optimizer="momentum",
            momentum=0.9,
            augment=("crop", "flip"),
        )
        partition, options = self.partition
        network: dict[str, Any] = {"channels": "16,32", "widths": "128"}
        problem = ProblemSpec(
            "fashion-mnist",
            model="cnn-pooled",
            partition=partition,
            clients=CLIENTS,
            model_options=registry.find("model", "cnn-pooled").parse(network),
            partition_options=registry.find("partition", partition).parse(options),
            schedule=schedule,
            corrupted=self.attackers,
            assumed_corrupted=self.assumed,
        )
        return GroupSpec(
            problem=problem,
            defense=compose.parse_defense(RULES[self.rule]),
            attack=compose.parse_attack(*ATTACKS[self.attack]),
            threats=(Threat("client", "paper", knows="own"),),
            seed=seed,
            device=machine.device,
            data_dir=machine.data_dir,
        )


EXPERIMENTS = [Experiment(rule, *setting) for setting in ACCURACY for rule in RULES]


def measure(experiment: Experiment, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """The row of a run for one seed."""
    record = prepare(experiment.group(machine, seed), progress)[0].record
    row: Row = {
        "attack": experiment.attack,
        "malicious": experiment.attackers,
        "shards": experiment.shards,
        "rule": experiment.rule,
    }
    if record["status"] != "ok":
        return [without_result(row, MEASURED, record)]
    metrics = record["metrics"]
    own = {"accuracy": metrics["accuracy"], "success": metrics.get("attack_success_rate")}
    return [row | own | {"cpu_seconds": record["cost"]["seconds"]}]


def published(column: str, cells: dict[Setting, Cell]) -> list[Published]:
    """The numbers of one column."""
    return [
        Published(
            piece=Experiment(rule, *setting).name,
            paper=mean,
            column=column,
            decimals=3,
            better="",
            source="study's tables",
            spread=Spread(deviation, REPEATS),
        )
        for setting, by_rule in cells.items()
        for rule, (mean, deviation) in zip(RULES, by_rule, strict=True)
    ]


BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS}
TABLE = Table(
    setting=SETTING,
    pieces=tuple(BY_NAME),
    rows=measured_by_name(BY_NAME, measure),
    measured=MEASURED,
    published=(*published("accuracy", ACCURACY), *published("success", SUCCESS)),
    notes=NOTES,
)
