"""BAFFLE, Figure 2: accuracy at the batch level by K, and what a larger K is worth.

The figure is a plot without numbers. Its text: "increasing K from 2000 to 5000 on CIFAR-10 with WRN-10-2 barely
improves accuracy by 2 %", and "comparable performance to the exact gradient results". The paper trains for 20 epochs on
MNIST and 40 on CIFAR-10; shorter pieces show the curves' beginning and are not compared."""

from __future__ import annotations

from fedarena.reproduce.baffle.batch_level import SETTING, Federation, accuracies, less
from fedarena.reproduce.baffle.common import ROUNDS, Experiment
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress
from fedarena.reproduce.published import Published
from fedarena.reproduce.table import Row, Table, measured_by_name

DIRECTIONS = {"lenet-baffle": (20, 100, 200, 500, 1000, 2000, 5000), "wrn-10-2": (500, 2000, 5000)}
BACKPROPAGATION = "backprop"
GAIN = "gain_2000_to_5000"
MEASURED = (*(f"K={k}" for k in DIRECTIONS["lenet-baffle"]), BACKPROPAGATION, GAIN, "cpu_seconds")
PAPER = 0.02
"""The gain on CIFAR-10 with WRN-10-2."""

FEDERATIONS = [
    Federation(data=data, model=model, epochs=epochs)
    for data, model, epochs in (
        ("mnist", "lenet-baffle", 2),
        ("mnist", "lenet-baffle", 20),
        ("cifar10", "lenet-baffle", 2),
        ("cifar10", "wrn-10-2", 2),
        ("cifar10", "wrn-10-2", 40),
    )
]


def experiments(federation: Federation) -> dict[str, Experiment]:
    """Column → the run."""
    data, model = federation.data, federation.model
    of_k = {f"K={k}": Experiment(data=data, model=model, title=f"K = {k}", paper=None, k=k) for k in DIRECTIONS[model]}
    return of_k | {BACKPROPAGATION: Experiment(data=data, model=model, title=BACKPROPAGATION, paper=None)}


def measure(federation: Federation, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """The row of a federation for one seed."""
    row = accuracies(federation, experiments(federation), machine, seed, progress)
    return [row | {GAIN: less(row, "K=5000", "K=2000")}]


def apart(federation: Federation) -> str:
    """Why the gain cannot be compared with the paper's; "" if it can."""
    if (federation.data, federation.model) != ("cifar10", "wrn-10-2"):
        return "the paper's is of CIFAR-10 with WRN-10-2"
    own = ROUNDS[federation.data]
    return "" if federation.epochs == own else f"{federation.epochs} of {own} epochs"


BY_NAME = {federation.name: federation for federation in FEDERATIONS}
TABLE = Table(
    setting=SETTING,
    pieces=tuple(BY_NAME),
    rows=measured_by_name(BY_NAME, measure),
    measured=MEASURED,
    published=tuple(
        Published(piece=name, paper=PAPER, column=GAIN, better="lower", apart=apart(federation))
        for name, federation in BY_NAME.items()
    ),
)
