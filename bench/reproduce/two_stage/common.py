"""The federations of the two-stage DP + Byzantine paper (Xiang et al. 2023, Section 6.1), for its tables.

Honest workers are fixed in number and share the training set out among them; Byzantine ones come on top, a share
p of all, int(h·p/(1 − p)) for h honest, in floating point as in their code (379 for 380). T = ⌈epochs·|D_i|/16⌉
rounds, batch 16, momentum 0.1, learning rate 0.2 at ε = 2, carried over to another ε as 0.2·σ₂/σ. Colorectal is not
among the data sets here.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedarena.core import registry
from fedarena.core.threat import Knowledge, Threat
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec, MethodSpec
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress
from fedarena.reproduce.published import Cause, Published, Spread
from fedarena.reproduce.same_run import TrainedRun
from fedarena.reproduce.table import Row, Table, measured_by_name, without_result
from fedarena.runs.trial import prepare


@dataclass(frozen=True)
class Federation:
    """A data set with its model, honest workers and epochs."""

    model: str
    options: dict[str, str]
    honest: int
    samples: int
    epochs: int


FEDERATIONS = {
    "fashion-mnist": Federation("mlp-two-stage", {"mean": "0.286", "std": "0.353"}, 20, 60000, 8),
    "usps": Federation("mlp-two-stage", {"mean": "0.2469", "std": "0.2853", "size": "28"}, 10, 7291, 10),
    "mnist": Federation("cnn-two-stage", {"mean": "0.1307", "std": "0.3081"}, 20, 60000, 8),
}
EVALUATIONS = 30
MEASURED = (
    *("accuracy", "lowest", "corrupted_selected", "honest_stage_one", "corrupted_stage_one", "sigma"),
    *("epsilon_replace_one", "cpu_seconds"),
)
"""The columns that `measure` adds to a row's setting."""

BLUR, RELU, WEIGHTS = ("blur", "0.75"), ("activation", "relu"), ("weights_seed", "1234")
"""Options of the model that make it the authors': their copy of USPS is blurred, their ELU is a ReLU, their initial
weights are the same in every run."""

AUTHORS = ", blur=0.75, activation=relu"
"""The title of a row with the authors' copy of USPS and their network."""

REFERENCE = ("dp-sgd", {"bound": "normalise", "momentum": "0.1"})
"""DP without any Byzantine defense: the paper's Reference Accuracy."""


@dataclass(frozen=True)
class Experiment:
    """One number of a table.

    Attributes:
        data: a data set of `FEDERATIONS`.
        title: what the row is called.
        paper: the paper's accuracy, None where it gives none.
        byzantine: share p of all workers.
        epsilon: target ε; None: no noise.
        attack, options, knowledge: the attack; without one (None), Byzantine workers follow the protocol.
        defense, settings: the defense and its options.
        rounds: fewer than the paper's, for cuts.
        partition: how the honest share the data out.
        model: options of the model beside those of its federation.
        participation: share of the workers drawn in each round. It does not change the noise of an upload.
        lr: the learning rate at ε = 2.
        source: the source of the paper's accuracy, if it is not the paper.
        logged: its spread, if it stands in the authors' logs. apart: why ours cannot be compared with it.
        remark: what else a reader must know about the two. causes: why they may differ.
        decimals: the number of decimals that the paper prints.
    """

    data: str
    title: str
    paper: float | None
    byzantine: float = 0.0
    epsilon: float | None = 2.0
    attack: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    knowledge: Knowledge = "own"
    defense: str = "two-stage"
    settings: tuple[tuple[str, str], ...] = ()
    rounds: int | None = None
    partition: str = "iid"
    model: tuple[tuple[str, str], ...] = ()
    participation: float = 1.0
    lr: float = 0.2
    source: str = ""
    logged: Spread | None = None
    apart: str = ""
    remark: str = ""
    causes: tuple[Cause, ...] = ()
    decimals: int = 2

    @property
    def name(self) -> str:
        """The name by which `--only` selects it."""
        noise = "∞" if self.epsilon is None else f"{self.epsilon:g}"
        return f"{self.data}, ε = {noise}, {self.title}, {self.byzantine:.0%} Byzantine"

    @property
    def heading(self) -> dict[str, Any]:
        """The columns of its row that belong to the table and not to the run."""
        share = f"{self.byzantine:.0%}"
        return {"data": self.data, "ε": self.epsilon, "workers": self.title, "byzantine": share, "paper": self.paper}


def paper_accuracies(experiments: Sequence[Experiment]) -> tuple[Published, ...]:
    """The paper's accuracies. Of the causes, those whose row is another one of the table, or another table's."""
    names = {experiment.name for experiment in experiments}
    return tuple(
        Published(
            piece=c.name,
            paper=c.paper,
            column="accuracy",
            decimals=c.decimals,
            source=c.source,
            apart=c.apart,
            remark=c.remark,
            spread=c.logged,
            causes=tuple(one for one in c.causes if _of_another_row(one, c.name, names)),
        )
        for c in experiments
        if c.paper is not None
    )


def _of_another_row(cause: Cause, name: str, names: Collection[str]) -> bool:
    elsewhere = not cause.row or "/" in cause.row
    return elsewhere or (cause.row in names and cause.row != name)


def reference(data: str, title: str, paper: float | None, epsilon: float | None = 2.0, **more: Any) -> Experiment:
    """An experiment without Byzantine workers and without a Byzantine defense."""
    name, options = REFERENCE
    return Experiment(
        data=data,
        title=title,
        paper=paper,
        byzantine=0.0,
        epsilon=epsilon,
        defense=name,
        settings=tuple(options.items()),
        **more,
    )


def noise_alone(papers: Mapping[str, Mapping[float | None, float]], **more: Any) -> list[Experiment]:
    """References for data set → ε → the paper's accuracy, where ε = None is no noise."""
    return [
        reference(data, "RA" if epsilon else "Non-DP", paper, epsilon, **more)
        for data, by_epsilon in papers.items()
        for epsilon, paper in by_epsilon.items()
    ]


def group(experiment: Experiment, machine: Machine, seed: int) -> GroupSpec:
    """The training run behind an experiment."""
    federation = FEDERATIONS[experiment.data]
    corrupted = int(federation.honest * experiment.byzantine / (1 - experiment.byzantine))
    clients = federation.honest + corrupted
    rounds = experiment.rounds or math.ceil(federation.epochs * (federation.samples // federation.honest) / 16)
    schedule = Schedule(
        rounds=rounds,
        batch_size=16,
        lr=experiment.lr,
        participation=experiment.participation,
        eval_every=max(1, rounds // EVALUATIONS),
    )
    model = registry.find("model", federation.model).parse(federation.options | dict(experiment.model))
    partition = registry.find("partition", experiment.partition).parse({})
    problem = ProblemSpec(
        dataset=experiment.data,
        model=federation.model,
        partition=experiment.partition,
        clients=clients,
        model_options=model,
        partition_options=partition,
        schedule=schedule,
        corrupted=corrupted,
        corrupted_data="resampled",
    )
    attack = None if experiment.attack is None else compose.parse_attack(experiment.attack, dict(experiment.options))
    cards = () if experiment.attack is None else compose.attack_cards(experiment.attack)
    form = "adaptive" if any(card.form == "adaptive" for card in cards) else "paper"
    threats = () if attack is None else (Threat("client", form, knows=experiment.knowledge),)  # type: ignore[arg-type]
    return GroupSpec(
        problem=problem,
        defense=_defense(experiment),
        attack=attack,
        threats=threats,
        seed=seed,
        device=machine.device,
        data_dir=machine.data_dir,
    )


def _defense(experiment: Experiment) -> MethodSpec:
    if experiment.epsilon is None:
        noise = {"epsilon": "none"}
    else:
        noise = {"epsilon": f"{experiment.epsilon:g}", "base_epsilon": "2"}
    undefended = experiment.defense.partition("+")[0] == "fedavg"
    return compose.parse_defense(experiment.defense, ({} if undefended else noise) | dict(experiment.settings))


def measure(experiment: Experiment, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """The row of an experiment for one seed: the paper's accuracy beside ours, and how the server used the uploads."""
    record = prepare(group(experiment, machine, seed), progress)[0].record
    metrics, curve = record["metrics"], record["attacked"].get("curve") or record["utility"]["clean_curve"]
    if record["status"] != "ok":
        return [without_result(experiment.heading, MEASURED, record)]
    own = {
        "accuracy": curve[-1][1],
        # Over the last three quarters, when every one of these federations has learned.
        "lowest": min(accuracy for rounds, accuracy, _ in curve if rounds >= curve[-1][0] / 4),
        "corrupted_selected": metrics.get("corrupted_weight"),
        "honest_stage_one": metrics.get("honest_first_stage"),
        "corrupted_stage_one": metrics.get("corrupted_first_stage"),
        "sigma": record["guarantees"].get("sigma"),
        "epsilon_replace_one": record["guarantees"].get("epsilon_replace_one"),
        "cpu_seconds": record["cost"]["seconds"],
    }
    return [experiment.heading | own]


def accuracy_table(
    setting: str, experiments: Sequence[Experiment], *, published: bool = True, notes: tuple[str, ...] = ()
) -> Table:
    """The table of these experiments.

    Args:
        published: whether the paper's accuracies are compared with ours.
        notes: what a reader must know of the paper's numbers.
    """
    by_name = {experiment.name: experiment for experiment in experiments}
    return Table(
        setting=setting,
        pieces=tuple(by_name),
        rows=measured_by_name(by_name, measure),
        measured=MEASURED,
        published=paper_accuracies(experiments) if published else (),
        runs={
            name: TrainedRun(group(experiment, Machine(), 0), experiment.heading)
            for name, experiment in by_name.items()
        },
        notes=notes,
    )
