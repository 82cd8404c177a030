"""Card and options of `trap-weights`."""

from dataclasses import dataclass

from fedarena.attacks.reconstruction.cards.analytic import CraftedModelOptions
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(CraftedModelOptions):
    """Options of trap weights."""

    scale: float = option(0.95, "length of positive weights, as a share of negative ones", above=0)


CARD = Card(
    name="trap-weights",
    kind="attack",
    goal="active-reconstruction",
    title="A malicious server's first layer has units that few samples activate",
    target="fedarena.attacks.reconstruction.trap_weights:TrapWeights",
    options=Options,
    version=3,
    paper="When the Curious Abandon Honesty: Federated Learning Is Not Private (EuroS&P)",
    authors="Boenisch, Dziedzic, Schuster, Shamsabadi, Shumailov, Papernot",
    year=2023,
    url="https://arxiv.org/abs/2112.02918",
    equations="Section 5.2, Algorithm 1",
    departures=(
        "Thresholds are set by the biases, at quantiles of the attacker's own samples; the paper sets the biases to 0 "
        "and searches for the scale of positive weights.",
        "A model that begins with a convolution is n/a; the paper lets samples through convolutions first.",
        "Labels of more than 16 samples are not put in order: which sample has which label is then left open.",
        "Behind a protocol the ratio is affine in the sample; the map is found by playing the protocol (as analytic).",
    ),
    check="more samples of a batch come back than without, tests/attacks/reconstruction/test_trap_weights.py",
    facts=(
        ("reads", "what clients answer to a model whose first layer it has set"),
        ("model", "two dense layers with biases at the beginning, such as mlp; else n/a"),
        ("knows", "half of the held-out data, for its thresholds and, but with prior=none, as its prior"),
    ),
    usual=(("model", "mlp"), ("lr", "0.05"), ("batch-size", "8")),
)
