"""BAFFLE, Table 1: iid, 10 clients, one local epoch a round; the ablations at the smallest K, and backpropagation.

Unless a row says otherwise, it is simulated "in law": each estimate is drawn from the exact distribution that K forward
passes would sample (`fedarena.defenses.baffle.stein_law`). Two rounds are run both with real forward passes and
simulated. LeNet on MNIST also has rows with real forward passes only, which take hours on a CPU. `central` has half of
the directions, and thus the same number of forward passes. CIFAR-10 is run for the paper's 40 epochs and, since
a folder may hold a part of its images, for the paper's number of steps, too."""

from __future__ import annotations

from dataclasses import replace

from fedarena.reproduce.baffle.common import FORM, Experiment, accuracy_table, cut, decayed, longer, real
from fedarena.reproduce.published import Cause

SETTING = f"test accuracy, 10 clients, iid, one local epoch a round: 20 rounds on MNIST, 40 on CIFAR-10; {FORM}"

DIRECTIONS = {"mnist": (100, 200, 500), "cifar10": (200, 500, 1000)}
PAPER = {
    ("mnist", "lenet-baffle"): (0.8727, 0.8948, 0.9218, 0.8506, 0.8155, 0.8618, 0.7602, 0.9431),
    ("cifar10", "lenet-baffle"): (0.4878, 0.5182, 0.5362, 0.4797, 0.4499, 0.4865, 0.4597, 0.5875),
    ("mnist", "wrn-10-2"): (0.8835, 0.8957, 0.9517, 0.8589, 0.7908, 0.7644, 0.7745, 0.9711),
    ("cifar10", "wrn-10-2"): (0.5227, 0.5559, 0.5863, 0.5001, 0.4976, 0.4337, 0.4289, 0.6229),
}
"""(data, model) → the three K; without average, ReLU, SELU, central at the first K; backpropagation."""


def _experiments(data: str, model: str, paper: tuple[float, ...]) -> list[Experiment]:
    low, middle, high = DIRECTIONS[data]
    plain = [
        Experiment(data=data, model=model, title=f"K = {k}, the paper's setting", paper=p, k=k)
        for k, p in zip((low, middle, high), paper, strict=False)
    ]
    changed = [
        Experiment(
            data=data,
            model=model,
            title=f"K = {low}, without average",
            paper=paper[3],
            k=low,
            settings=(("ema", "none"),),
        ),
        Experiment(
            data=data,
            model=model,
            title=f"K = {low}, ReLU",
            paper=paper[4],
            k=low,
            settings=(),
            options=(("activation", "relu"),),
        ),
        Experiment(
            data=data,
            model=model,
            title=f"K = {low}, SELU",
            paper=paper[5],
            k=low,
            settings=(),
            options=(("activation", "selu"),),
        ),
        Experiment(data=data, model=model, title=f"K = {low // 2}, central", paper=paper[6], k=low // 2),
        Experiment(
            data=data,
            model=model,
            title=f"K = {low}, decay 0.995 from the start",
            paper=None,
            k=low,
            settings=(("ema_warmup", "false"),),
        ),
        Experiment(data=data, model=model, title="backpropagation", paper=paper[7]),
    ]
    return [*plain, *changed]


FEWER_STEPS = Cause(
    "a third of the paper's images, and so a third of its steps: rows with `the paper's number of steps` are above the "
    "paper"
)
"""Of LeNet that is measured at every K, of WRN-10-2 by backpropagation."""


def _has_decay(experiment: Experiment) -> bool:
    """Whether the run has a row with the code's weight decay beside it."""
    return experiment.data == "mnist" and (experiment.k is None or experiment.title.endswith("the paper's setting"))


def _explained(experiment: Experiment) -> Experiment:
    """The experiment with what makes it differ from the paper."""
    if experiment.data == "cifar10":
        return replace(experiment, causes=(FEWER_STEPS,))
    without_decay = Cause("the released code's weight decay of 5e-4 is left out", decayed(experiment).name)
    return replace(experiment, causes=(without_decay,) if _has_decay(experiment) else ())


EXPERIMENTS = [
    _explained(experiment) for (data, model), paper in PAPER.items() for experiment in _experiments(data, model, paper)
]
EXPERIMENTS += [
    longer(experiment, experiment.title.removesuffix(", the paper's setting"))
    for experiment in EXPERIMENTS
    if experiment.data == "cifar10" and (experiment.k is None or experiment.title.endswith("the paper's setting"))
]
EXPERIMENTS += [replace(decayed(experiment), causes=()) for experiment in EXPERIMENTS if _has_decay(experiment)]
EXPERIMENTS += cut(EXPERIMENTS[0], rounds=2)
EXPERIMENTS += [real(experiment) for experiment in EXPERIMENTS[:3]]

TABLE = accuracy_table(SETTING, EXPERIMENTS)
