"""Card of `krum`."""

from fedarena.core.card import Card

CARD = Card(
    name="krum",
    kind="aggregator",
    title="Krum: the upload closest to its neighbours",
    target="fedarena.defenses.aggregators.krum:Krum",
    paper="Machine Learning with Adversaries: Byzantine Tolerant Gradient Descent (NeurIPS)",
    authors="Blanchard, El Mhamdi, Guerraoui, Stainer",
    year=2017,
    url="https://arxiv.org/abs/1703.02757",
    equations="Section 4, the Krum function",
    departures=(
        "A row's neighbourhood is the n − f − 2 rows nearest to it, not counting itself, as in the paper. ByzFL "
        "0.0.11 and byzpy 0.1.4 take n − f − 1, so that f = k here is f = k + 1 there.",
    ),
    check=(
        "no number of the paper; tests/defenses/aggregators holds it to the definition written with loops, and to "
        "ByzFL, whose f + 1 is this f; benchmarks/ also to Flower"
    ),
    facts=(
        ("needs", "n ≥ 2f + 3"),
        ("clients", "receive the upload that was picked, whole, and can see whether it is their own"),
        ("ties", "the row closest to all rows, then what the rows hold decides; the paper: the first"),
    ),
)
