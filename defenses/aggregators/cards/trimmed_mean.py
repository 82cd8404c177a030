"""Card of `trimmed-mean`."""

from fedarena.core.card import Card

CARD = Card(
    name="trimmed-mean",
    kind="aggregator",
    title="Trimmed mean of every coordinate",
    target="fedarena.defenses.aggregators.trimmed_mean:TrimmedMean",
    paper="Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates (ICML)",
    authors="Yin, Chen, Kannan, Bartlett",
    year=2018,
    url="https://arxiv.org/abs/1803.01498",
    equations="Definition 2, with β = f/n",
    check=(
        "no number of the paper; tests/defenses/aggregators holds it to the definition written with loops, and to ByzFL"
    ),
    facts=(
        ("needs", "n ≥ 2f + 1; f = 0 is the mean"),
        ("drops", "the f largest and the f smallest values of every coordinate"),
        ("device", "sorted on the CPU; tensors of other devices are copied there and back"),
    ),
)
