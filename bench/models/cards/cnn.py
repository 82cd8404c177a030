"""Card and options of `cnn`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option
from fedarena.models.cards.bottleneck import BOTTLENECK_FACT, beta_option, bottleneck_option
from fedarena.models.cards.distributions import init_option
from fedarena.models.cards.layers import BATCH_FACT, norm_option


@dataclass(frozen=True)
class Options:
    """Options of the small CNN."""

    channels: tuple[int, ...] = option((8, 16), "channels of each convolution, from input to output", low=1)
    widths: tuple[int, ...] = option((32,), "units of each hidden dense layer, from input to output", low=1)
    mean: float = option(0.5, "subtracted from every pixel")
    std: float = option(0.25, "divides every pixel", above=0)
    init: str = init_option("default")
    norm: str = norm_option("none", listed=False)
    block: int = option(
        0,
        "units of a dense block in front, from pixels to pixels, as a malicious server inserts it; 0: none",
        low=0,
        listed=False,
    )
    bottleneck: int = bottleneck_option()
    beta: float = beta_option()


CARD = Card(
    name="cnn",
    kind="model",
    title="Small CNN: 3×3 convolutions of stride 2, then dense layers",
    target="fedarena.models.small_cnn:SmallCNN",
    options=Options,
    departures=("Not from a paper: the smallest CNN that learns Fashion-MNIST and CIFAR-10 at a CPU's speed.",),
    facts=(("used by", "the suites iid and heterogeneous"), BATCH_FACT, BOTTLENECK_FACT),
    check="26,698 parameters on 1x28x28 inputs and 10 classes: tests/models/test_cnn.py",
)
"""The parameters: 80 + 1,168 + (7·7·16 + 1)·32 + 330."""
