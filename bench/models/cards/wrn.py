"""Card and options of `wrn-10-2`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option
from fedarena.models.cards.distributions import init_option
from fedarena.models.cards.layers import BATCH_FACT, activation_option, norm_option


@dataclass(frozen=True)
class Options:
    """Options of the Wide ResNet."""

    activation: str = activation_option()
    norm: str = norm_option("group")
    init: str = init_option("default")
    mean: float = option(0.0, "subtracted from every pixel")
    size: int | None = option(None, "resize images to this many pixels a side; the papers': 32", low=8)


CARD = Card(
    name="wrn-10-2",
    kind="model",
    title="Wide ResNet of depth 10 and width 2, as BAFFLE trains it",
    target="fedarena.models.wrn:WideResNet",
    options=Options,
    paper="Wide Residual Networks (BMVC)",
    authors="Zagoruyko, Komodakis",
    year=2016,
    url="https://arxiv.org/abs/1605.07146",
    equations="Table 1 with N = 1 block a group and k = 2; no dropout",
    departures=(
        "Wide ResNets use ReLU and batch normalisation with parameters and running statistics. The defaults here are "
        "BAFFLE's (Feng et al. 2023, arXiv 2301.12195): Hardswish and GroupNorm without parameters.",
    ),
    facts=(
        BATCH_FACT,
        ("no option std", "the first norm, after a convolution without bias, divides any factor on the pixels out"),
    ),
    check="302,778 parameters on 3x32x32 inputs and 10 classes, norms have none (BAFFLE: 3.0e5): "
    "tests/models/test_baffle_models.py",
)
