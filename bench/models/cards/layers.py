"""The options `activation` and `norm`, of BAFFLE's models among others."""

from typing import Any

from fedarena.core.options import option

ACTIVATIONS = ("hardswish", "relu", "selu")
NORMS = ("none", "group", "batch")

BATCH_FACT = (
    "norm=batch",
    "normalises by the mean and variance of the batch at hand, in evaluation too (1,000 test images at a time): there "
    "are no running statistics to upload; training.batch_statistics sends what they would show. Where gradients are "
    "taken sample by sample, each sample is its own batch.",
)


def activation_option() -> Any:
    """The field; BAFFLE trains with Hardswish and compares with the others."""
    return option("hardswish", "activation; BAFFLE's guideline is hardswish", choices=ACTIVATIONS)


def norm_option(default: str, listed: bool = True) -> Any:
    """The field, with what BAFFLE's code uses for its models."""
    return option(
        default,
        "normalisation without parameters: group GroupNorm of max(2, channels/16) groups, or the next fewer that "
        "divide; batch the statistics of the batch at hand",
        choices=NORMS,
        listed=listed,
    )
