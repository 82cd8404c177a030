"""Card of `arc`."""

from fedarena.core.card import Card

CARD = Card(
    name="arc",
    kind="aggregator",
    title="ARC: adaptive robust clipping before another rule",
    target="fedarena.defenses.aggregators.arc:ARC",
    paper="Adaptive Gradient Clipping for Robust Federated Learning (ICLR)",
    authors="Allouah, Guerraoui, Gupta, Jellouli, Rizk, Stephan",
    year=2025,
    url="https://arxiv.org/abs/2405.14432",
    equations="ARC: the k = ⌊2(f/n)(n − f)⌋ longest uploads are clipped to the (k + 1)-th longest's norm",
    check=(
        "no number of the paper; tests/defenses/aggregators holds it to the definition written with loops, and to ByzFL"
    ),
    facts=(
        ("wraps", "another rule"),
        ("needs", "n ≥ 2f + 1 and what the other rule needs; f = 0 clips nothing"),
    ),
)
