"""Card and options of `cnn-bucketing`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option
from fedarena.models.cards.distributions import init_option


@dataclass(frozen=True)
class Options:
    """Options of the bucketing paper's CNN."""

    channel_dropout: float = option(0.25, "share of the second convolution's channels that is dropped", low=0, below=1)
    dropout: float = option(0.5, "share of the dense layer's units that is dropped", low=0, below=1)
    mean: float = option(0.1307, "subtracted from every pixel; the code's, of MNIST")
    std: float = option(0.3081, "divides every pixel; the code's, of MNIST", above=0)
    init: str = init_option("default")


CARD = Card(
    name="cnn-bucketing",
    kind="model",
    title="CNN of Karimireddy et al. (2022), two convolutions with dropout",
    target="fedarena.models.cnn_bucketing:BucketingCNN",
    options=Options,
    paper="Byzantine-Robust Learning on Heterogeneous Datasets via Bucketing (ICLR)",
    authors="Karimireddy, He, Jaggi",
    year=2022,
    url="https://arxiv.org/abs/2006.09365",
    equations="the code's Net (codes/tasks/mnist.py): no ReLU between the second convolution and its pooling",
    departures=(
        "The code gives F.nll_loss a log-softmax; here the same cross-entropy takes the outputs.",
        "Masks come from each client's own randomness, anew in each local step; the code draws them all from one.",
    ),
    facts=(
        ("trained by", "protocols whose clients take plain gradient steps; the others refuse it"),
        (
            "attackers",
            "do not know a client's masks: they match the network without dropout, and a true gradient is one of "
            "that network",
        ),
        ("without a federation", "what parties reach alone is trained without dropout"),
    ),
    check="1,199,882 parameters on 1x28x28 inputs and 10 classes: tests/models/test_dropout.py",
)
