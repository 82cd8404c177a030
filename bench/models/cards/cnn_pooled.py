"""Card and options of `cnn-pooled`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option
from fedarena.models.cards.distributions import init_option


@dataclass(frozen=True)
class Options:
    """Options of the CNN with pooling."""

    channels: tuple[int, ...] = option((20, 50), "channels of each convolution, from input to output", low=1)
    widths: tuple[int, ...] = option((500,), "units of each hidden dense layer, from input to output", low=1)
    mean: float = option(0.1307, "subtracted from every pixel; that of MNIST")
    std: float = option(0.3081, "divides every pixel; that of MNIST", above=0)
    init: str = init_option("default")


CARD = Card(
    name="cnn-pooled",
    kind="model",
    title="CNN of ByzFL's benchmark: 5×5 convolutions with max pooling, then dense layers",
    target="fedarena.models.pooled_cnn:PooledCNN",
    options=Options,
    paper="ByzFL: Research Framework for Robust Federated Learning",
    authors="González, Guerraoui, Pinot, Rizk, Stephan, Taïani",
    year=2025,
    url="https://arxiv.org/abs/2505.24802",
    equations="the library's cnn_mnist (byzfl/fed_framework/models.py)",
    departures=("The library's log-softmax is part of the loss here.",),
    facts=(("used by", "the tables external/byzfl, and external/flower with channels=16,32 and widths=128"),),
    check="431,080 parameters on 1x28x28 inputs and 10 classes: tests/models/test_cnn.py",
)
"""The parameters: 520 + 25,050 + (800 + 1)·500 + 5,010; with 16, 32 and 128 they are 80,202."""
