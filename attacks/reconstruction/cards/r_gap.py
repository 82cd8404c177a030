"""Card and options of `r-gap`."""

from dataclasses import dataclass

from fedarena.attacks.reconstruction.helpers.search_options import VictimOptions
from fedarena.core.card import Card


@dataclass(frozen=True)
class Options(VictimOptions):
    """Options of R-GAP."""


CARD = Card(
    name="r-gap",
    kind="attack",
    goal="reconstruction",
    title="R-GAP: single samples by linear equations, from the last layer to the first",
    target="fedarena.attacks.reconstruction.r_gap:RGap",
    options=Options,
    version=1,
    paper="R-GAP: Recursive Gradient Attack on Privacy (ICLR)",
    authors="Zhu, Blaschko",
    year=2021,
    url="https://arxiv.org/abs/2010.07733",
    equations="Algorithm 1; the rank analysis",
    departures=(
        "Many classes: of an output layer with a bias, its gradient tells the residual. Without one, the residual's "
        "length is where the softmax agrees with it. The paper has one logit and known labels.",
        "ReLU, ELU, sigmoid and tanh beside LeakyReLU. Of an inactive ReLU there is no weight constraint.",
        "Weight constraints are weighted by the activation's slope. Padding is in the matrices, and needs no "
        "constraints of its own.",
        "Where the equations of a layer leave directions open, the attack does not apply and says how many. The paper "
        "goes on with the solution of least norm.",
    ),
    check="CNN6 on CIFAR-10: 49.01 dB for one image in breaching's notebook, above 95 dB for digits and lenet-dlg "
    "here, tests/attacks/reconstruction/test_r_gap.py",
    facts=(
        ("reads", "the plain gradient of a single sample, and the model that it was computed at"),
        (
            "model",
            "chains of dense and convolutional layers, such as lenet-dlg, mlp and cnn; n/a with pooling, norms or "
            "shortcuts, and where a layer has fewer independent equations than inputs",
        ),
    ),
    usual=(("model", "lenet-dlg"),),
)
