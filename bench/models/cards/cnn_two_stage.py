"""Card and options of `cnn-two-stage`."""

from fedarena.core.card import Card
from fedarena.models.cards.mlp_two_stage import DEPARTURES, Options

CARD = Card(
    name="cnn-two-stage",
    kind="model",
    title="CNN of the two-stage DP paper, three convolutions",
    target="fedarena.models.cnn_two_stage:TwoStageCNN",
    options=Options,
    paper="Practical Differentially Private and Byzantine-resilient Federated Learning (SIGMOD)",
    authors="Xiang, Wang, Lin, Wang",
    year=2023,
    url="https://arxiv.org/abs/2304.09762",
    equations="Table 7",
    departures=DEPARTURES,
    check="21,802 parameters on 1x28x28 inputs and 10 classes: tests/models/test_models.py",
)
