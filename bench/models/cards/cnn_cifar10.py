"""Card and options of `cnn-cifar10`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.models.cards.distributions import init_option


@dataclass(frozen=True)
class Options:
    """Options of DBCL's CNN for CIFAR-10."""

    init: str = init_option("default")


CARD = Card(
    name="cnn-cifar10",
    kind="model",
    title="CNN of DBCL for CIFAR-10, three convolutions",
    target="fedarena.models.cnn:Cifar10CNN",
    options=Options,
    paper="Matrix Sketching for Secure Collaborative Machine Learning (ICML)",
    authors="Zhang, Wang",
    year=2021,
    url="https://arxiv.org/abs/1909.11201",
    equations="Section 6.2",
    departures=(
        "The authors' code draws larger initial weights for sketched layers; here every layer follows the option init.",
    ),
    check="2,048 features into the dense layer on 3x32x32 inputs: tests/models/test_models.py",
)
