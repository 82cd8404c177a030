"""Card and options of `lenet-baffle`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option
from fedarena.models.cards.distributions import init_option
from fedarena.models.cards.layers import BATCH_FACT, activation_option, norm_option


@dataclass(frozen=True)
class Options:
    """Options of BAFFLE's LeNet."""

    activation: str = activation_option()
    norm: str = norm_option("none")
    width: int = option(1, "factor on the channels 16 and 64; the paper's CIFAR-100: 2", choices=(1, 2))
    init: str = init_option("default")
    mean: float = option(0.0, "subtracted from every pixel; the paper's MNIST: 0")
    std: float = option(1.0, "divides every pixel; the paper's MNIST: 1", above=0)
    size: int | None = option(None, "resize images to this many pixels a side; the paper's MNIST: 32", low=4)


CARD = Card(
    name="lenet-baffle",
    kind="model",
    title="LeNet of BAFFLE, two convolutions and global pooling",
    target="fedarena.models.lenet_baffle:BaffleLeNet",
    options=Options,
    paper="Does Federated Learning Really Need Backpropagation?",
    authors="Feng, Pang, Du, Chen, Yan, Lin",
    year=2023,
    url="https://arxiv.org/abs/2301.12195",
    equations="Section 4, LeNet; the authors' code for the layers",
    departures=(
        "The authors run this network without a norm. With norm=group or batch, one stands after each convolution, "
        "before the activation; where theirs would stand is not known.",
    ),
    facts=(BATCH_FACT,),
    check="26,730 parameters on 1x32x32 inputs and 10 classes (the paper: 2.7e4): tests/models/test_baffle_models.py",
)
