"""Card and options of `clipping`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of static clipping."""

    c: float = option(2.0, "norm that uploads are clipped to", above=0)


CARD = Card(
    name="clipping",
    kind="aggregator",
    title="Static clipping before another rule",
    target="fedarena.defenses.aggregators.clipping:Clipping",
    options=Options,
    paper="Adaptive Gradient Clipping for Robust Federated Learning (ICLR)",
    authors="Allouah, Guerraoui, Gupta, Jellouli, Rizk, Stephan",
    year=2025,
    url="https://arxiv.org/abs/2405.14432",
    equations="clip_C: x ↦ x min(1, C/‖x‖), the static clipping that the paper compares ARC with",
    check=(
        "no number of the paper; tests/defenses/aggregators holds it to the definition written with loops, and to ByzFL"
    ),
    facts=(
        ("wraps", "another rule"),
        ("c", "2 is ByzFL's default, in units of one model's gradients or momenta"),
        ("needs", "what the other rule needs"),
    ),
)
