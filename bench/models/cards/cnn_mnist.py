"""Card and options of `cnn-mnist`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.models.cards.distributions import init_option


@dataclass(frozen=True)
class Options:
    """Options of DBCL's CNN for MNIST."""

    init: str = init_option("default")


CARD = Card(
    name="cnn-mnist",
    kind="model",
    title="CNN of DBCL for MNIST, two convolutions",
    target="fedarena.models.cnn:MnistCNN",
    options=Options,
    paper="Matrix Sketching for Secure Collaborative Machine Learning (ICML)",
    authors="Zhang, Wang",
    year=2021,
    url="https://arxiv.org/abs/1909.11201",
    equations="Section 6.2",
    departures=(
        "The authors' code draws larger initial weights for sketched layers; here every layer follows the option init.",
    ),
    check="582,026 parameters on 1x28x28 inputs and 10 classes: tests/models/test_models.py",
)
