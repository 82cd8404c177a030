"""BAFFLE, Table 2: 100 clients with classes by a Dirichlet distribution (α = 0.3), 40 rounds of one local epoch,
CIFAR-10.

Estimates are drawn from their exact distribution (`fedarena.defenses.baffle.stein_law`)."""

from __future__ import annotations

from dataclasses import replace

from fedarena.reproduce.baffle.common import FORM, Experiment, accuracy_table, longer
from fedarena.reproduce.published import Cause

SETTING = f"test accuracy, CIFAR-10, 100 clients, Dirichlet 0.3, 40 rounds of one local epoch; {FORM}"

PAPER = {
    "lenet-baffle": {200: 0.3521, 500: 0.3814, 1000: 0.3971, None: 0.4441},
    "wrn-10-2": {200: 0.3953, 500: 0.4169, 1000: 0.4342, None: 0.5118},
}
"""Model → K (None: backpropagation) → accuracy."""

EXPERIMENTS = [
    Experiment(
        data="cifar10",
        model=model,
        title="backpropagation" if k is None else f"K = {k}",
        paper=accuracy,
        k=k,
        clients=100,
        partition="dirichlet",
    )
    for model, by_k in PAPER.items()
    for k, accuracy in by_k.items()
]
LONGER = [longer(experiment, experiment.title) for experiment in EXPERIMENTS]
EXPERIMENTS = [
    *(
        replace(
            experiment,
            causes=(Cause("a third of the paper's images, and so a third of its steps", other.name),),
        )
        for experiment, other in zip(EXPERIMENTS, LONGER, strict=True)
    ),
    *LONGER,
]

TABLE = accuracy_table(SETTING, EXPERIMENTS)
