"""Card and options of `imprint`."""

from dataclasses import dataclass

from fedarena.attacks.reconstruction.cards.analytic import CraftedModelOptions
from fedarena.core.card import Card


@dataclass(frozen=True)
class Options(CraftedModelOptions):
    """Options of the imprint."""


CARD = Card(
    name="imprint",
    kind="attack",
    goal="active-reconstruction",
    title="A malicious server's first layer sorts a batch into bins (Robbing the Fed)",
    target="fedarena.attacks.reconstruction.imprint:Imprint",
    options=Options,
    version=2,
    paper="Robbing the Fed: Directly Obtaining Private Data in Federated Learning with Modified Models (ICLR)",
    authors="Fowl, Geiping, Czaja, Goldblum, Goldstein",
    year=2022,
    url="https://arxiv.org/abs/2110.13057",
    equations="Section 3, Equations 3 to 6",
    departures=(
        "The first layers of the model at hand are set, where they are dense. The paper inserts a block of its own in "
        "front of a convolutional network, which `--model cnn --set model.block=512` has.",
        "Thresholds are quantiles of the attacker's own samples; the paper takes those of an assumed distribution.",
        "Labels of more than 16 samples are not put in order: which sample has which label is then left open.",
        "Behind a protocol the ratio is affine in the sample; the map is found by playing the protocol (as analytic).",
    ),
    check="samples alone in their bins come back exactly, one by one and from a secure sum, "
    "tests/attacks/reconstruction/test_imprint.py",
    facts=(
        ("reads", "what clients answer to a model whose first layers it has set"),
        ("model", "two dense layers with biases at the beginning: mlp, or cnn with a block; else n/a"),
        ("knows", "half of the held-out data, for its thresholds and, but with prior=none, as its prior"),
    ),
    usual=(("model", "mlp"), ("lr", "0.05"), ("batch-size", "8")),
)
