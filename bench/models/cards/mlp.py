"""Card and options of `mlp`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option
from fedarena.models.cards.bottleneck import BOTTLENECK_FACT, beta_option, bottleneck_option
from fedarena.models.cards.distributions import init_option


@dataclass(frozen=True)
class Options:
    """Options of the fully connected network."""

    widths: tuple[int, ...] = option((200, 200), "units of each hidden layer, from input to output", low=1)
    activation: str = option("relu", "activation after each hidden layer", choices=("relu", "sigmoid", "tanh", "elu"))
    bias: bool = option(True, "biases in every layer")
    init: str = init_option("default")
    bottleneck: int = bottleneck_option()
    beta: float = beta_option()


CARD = Card(
    name="mlp",
    kind="model",
    title="Fully connected network",
    target="fedarena.models.mlp:MLP",
    options=Options,
    paper="Communication-Efficient Learning of Deep Networks from Decentralized Data (AISTATS)",
    authors="McMahan, Moore, Ramage, Hampson, Agüera y Arcas",
    year=2017,
    url="https://arxiv.org/abs/1602.05629",
    equations="Section 3, the 2NN of 200 units a layer; DBCL's MLP is the same",
    facts=(BOTTLENECK_FACT,),
    check="199,210 parameters on 28x28 inputs and 10 classes: tests/models/test_models.py",
)
