"""Card and options of `sign-flip`."""

from dataclasses import dataclass

from fedarena.attacks.poisoning.helpers.tuning_options import TuningOptions
from fedarena.attacks.poisoning.helpers.usual_problem import USUAL
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(TuningOptions):
    """Options of sign flipping."""

    scale: float = option(4.0, "k of the upload −k·own", above=0)


CARD = Card(
    name="sign-flip",
    kind="attack",
    goal="poisoning",
    form="paper",
    usual=USUAL,
    title="Sign flipping: the own upload, reversed and scaled",
    target="fedarena.attacks.poisoning.sign_flip:SignFlip",
    options=Options,
    paper="RSA: Byzantine-Robust Stochastic Aggregation Methods for Distributed Learning from Heterogeneous Datasets "
    "(AAAI)",
    authors="Li, Xu, Chen, Giannakis, Ling",
    year=2019,
    url="https://arxiv.org/abs/1811.03761",
    equations="Section 5, sign-flipping attack: the true message times a negative constant",
    departures=(
        "RSA's messages are models; here the protocol's upload is multiplied, whatever it holds.",
        "Without a server the difference of two nodes is multiplied: where node j would have sent h_j, node i hears "
        "h_i + k·(h_i − h_j).",
    ),
    check="no number of the paper; tests/attacks/poisoning/test_sign_flip.py",
    facts=(
        ("knows", "own: its own samples"),
        ("sends", "−k times what the protocol would have sent, each colluder from its own batch"),
    ),
)
