"""BAFFLE, Figure 3: what each guideline is worth at the batch level, K = 100 on MNIST and 500 on CIFAR-10.

The figure is a plot without numbers. Its text: "twice-FD, Hardswish, and EMA all improve performance without extra
computation". `central` has half of the directions, and thus the same number of forward passes; the
distribution that estimates are drawn from is otherwise the same. A column with `less` is
the plain form's accuracy less the ablation's. The claim of a guideline holds where it is above 0."""

from __future__ import annotations

from fedarena.reproduce.baffle.batch_level import SETTING, Federation, accuracies, less
from fedarena.reproduce.baffle.common import Experiment
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress
from fedarena.reproduce.published import Published
from fedarena.reproduce.table import Row, Table, measured_by_name

DIRECTIONS = {"mnist": 100, "cifar10": 500}
PLAIN = "plain"
ABLATIONS = ("central", "relu", "selu", "no average")
LESS = {ablation: f"less {ablation}" for ablation in ABLATIONS}
MEASURED = (PLAIN, *ABLATIONS, *LESS.values(), "cpu_seconds")
CLAIMS = {
    "central": "twice-FD outperforms central",
    "relu": "Hardswish is superior to ReLU",
    "selu": "Hardswish is superior to SELU",
    "no average": "EMA enhances the performance",
}

FEDERATIONS = [
    Federation(data=data, model="lenet-baffle", epochs=epochs)
    for data, epochs in (("mnist", 2), ("mnist", 20), ("cifar10", 2), ("cifar10", 40))
]


def experiments(federation: Federation) -> dict[str, Experiment]:
    """Column → the run."""
    k = DIRECTIONS[federation.data]

    def one(
        title: str, k: int = k, settings: tuple[tuple[str, str], ...] = (), options: tuple[tuple[str, str], ...] = ()
    ) -> Experiment:
        return Experiment(
            data=federation.data,
            model=federation.model,
            title=title,
            paper=None,
            k=k,
            settings=settings,
            options=options,
        )

    return {
        PLAIN: one(PLAIN),
        "central": one("central", k=k // 2),
        "relu": one("relu", options=(("activation", "relu"),)),
        "selu": one("selu", options=(("activation", "selu"),)),
        "no average": one("no average", settings=(("ema", "none"),)),
    }


def measure(federation: Federation, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """The row of a federation for one seed."""
    row = accuracies(federation, experiments(federation), machine, seed, progress)
    return [row | {column: less(row, PLAIN, ablation) for ablation, column in LESS.items()}]


BY_NAME = {federation.name: federation for federation in FEDERATIONS}
TABLE = Table(
    setting=SETTING,
    pieces=tuple(BY_NAME),
    rows=measured_by_name(BY_NAME, measure),
    measured=MEASURED,
    published=tuple(
        Published(
            piece=name,
            paper=CLAIMS[ablation],
            column=column,
            better="",
            within=(0.0, 1.0),
            remark="held: the plain form is ahead",
        )
        for name in BY_NAME
        for ablation, column in LESS.items()
    ),
)
