"""Card of `bulyan`."""

from fedarena.core.card import Card

CARD = Card(
    name="bulyan",
    kind="aggregator",
    title="Bulyan on Krum",
    target="fedarena.defenses.aggregators.bulyan:Bulyan",
    paper="The Hidden Vulnerability of Distributed Learning in Byzantium (ICML)",
    authors="El Mhamdi, Guerraoui, Rouault",
    year=2018,
    url="https://arxiv.org/abs/1802.07927",
    equations=(
        "Bulyan(A) with A = Krum: θ = n − 2f selections, then the mean of the β = θ − 2f values closest to the median"
    ),
    departures=(
        "Krum's neighbourhood among k rows left is k − f − 2, but at least 1. The paper's last selections are from as "
        "few as 2f + 1 rows, where Krum has none for f = 1.",
        "The median of an even number of values is the mean of the two middle ones.",
    ),
    check=(
        "no number of the paper; tests/defenses/aggregators holds it to the definition written with loops; "
        "benchmarks/ to Flower; ByzFL has none. Where f ≤ 2 the last Krum selections are ties, which Flower gives "
        "to the first row and this to the one closest to all"
    ),
    facts=(
        ("needs", "n ≥ 4f + 3; f = 0 is the mean"),
        ("used", "1/θ for the rows selected; the second step has a weight for every coordinate, which is not reported"),
        ("device", "sorted on the CPU; tensors of other devices are copied there and back"),
    ),
)
