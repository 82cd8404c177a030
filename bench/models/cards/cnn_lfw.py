"""Card and options of `cnn-lfw`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option
from fedarena.models.cards.distributions import init_option


@dataclass(frozen=True)
class Options:
    """Options of DBCL's CNN for LFW."""

    channels: tuple[int, ...] = option(
        (64, 64, 128), "channels of each convolution, from input to output; Melis et al. 2019: 32,64,128", low=1
    )
    widths: tuple[int, ...] = option(
        (32, 32), "units of each hidden dense layer, from input to output; Melis et al. 2019: 256", low=1
    )
    init: str = init_option("default")


CARD = Card(
    name="cnn-lfw",
    kind="model",
    title="CNN of DBCL for LFW, three convolutions",
    target="fedarena.models.cnn:LfwCNN",
    options=Options,
    paper="Matrix Sketching for Secure Collaborative Machine Learning (ICML)",
    authors="Zhang, Wang",
    year=2021,
    url="https://arxiv.org/abs/1909.11201",
    equations="Section 6.2",
    departures=(
        "The paper has one output with a sigmoid for its two classes; here two outputs with a softmax, as all models "
        "have, which distinguish the same two classes.",
        "The paper does not say whether convolutions are padded; here by one pixel, so that only pooling shrinks.",
        "The authors' code draws larger initial weights for sketched layers; here every layer follows the option init.",
    ),
    facts=(
        (
            "first steps",
            "fedavg on lfw: 2 clients, FedSGD, batches of 32, one seed, 300 rounds. With init=default the accuracy is "
            "the larger class's share (0.776) at lr 0.01, the paper's, and at lr 0.05. Test losses are 0.532 and "
            "0.502. With channels=16,16,32, init=kaiming and lr 0.05 accuracy is 0.793. Which is no final accuracy: "
            "the paper trains for 20,000 iterations.",
        ),
    ),
    check="255,938 parameters on 1x62x47 inputs and 2 classes: tests/models/test_cnn.py",
)
