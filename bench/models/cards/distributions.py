"""The option `init`, which every model has."""

from typing import Any

from fedarena.core.options import option

DISTRIBUTIONS = ("default", "xavier-he", "uniform-half", "kaiming")
HELP = (
    "distribution of the initial parameters: default U(±1/√fan_in) as PyTorch; xavier-he normal weights as "
    "the two-stage paper's code, zero biases; uniform-half U(−½, ½) as DLG; kaiming N(0, 2/fan_in), zero biases"
)


def init_option(default: str) -> Any:
    """The field, with the distribution that this model's paper uses."""
    return option(default, HELP, choices=DISTRIBUTIONS)
