"""Card and options of `lenet-dlg`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.models.cards.distributions import init_option


@dataclass(frozen=True)
class Options:
    """Options of DLG's LeNet."""

    init: str = init_option("uniform-half")


CARD = Card(
    name="lenet-dlg",
    kind="model",
    title="LeNet with sigmoids, of DLG",
    target="fedarena.models.lenet_dlg:DlgLeNet",
    options=Options,
    paper="Deep Leakage from Gradients (NeurIPS)",
    authors="Zhu, Liu, Han",
    year=2019,
    url="https://arxiv.org/abs/1906.08935",
    equations="Section 5; the authors' code for the layers and U(−½, ½)",
    check="768 features into the dense layer on 3x32x32 inputs, 588 on 1x28x28: tests/models/test_models.py",
)
