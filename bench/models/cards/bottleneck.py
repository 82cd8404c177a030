"""The options `bottleneck` and `beta`, of models that can have a variational bottleneck."""

from typing import Any

from fedarena.core.options import option

BOTTLENECK_FACT = (
    "bottleneck",
    "PRECODE's variational bottleneck of so many numbers stands before the output layer. Clients draw its noise; "
    "evaluation and training without a federation take none.",
)


def bottleneck_option() -> Any:
    """The field; PRECODE has 256."""
    return option(
        0,
        "numbers of a variational bottleneck before the output layer, whose noise clients draw; 0: none",
        low=0,
        listed=False,
    )


def beta_option() -> Any:
    """The field; PRECODE has 1e-3."""
    return option(
        0.001,
        "weight of the bottleneck's divergence from a normal distribution, in bits, in the loss",
        low=0,
        idle_with=("bottleneck", 0),
        listed=False,
    )
