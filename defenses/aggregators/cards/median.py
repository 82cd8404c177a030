"""Card of `median`."""

from fedarena.core.card import Card

CARD = Card(
    name="median",
    kind="aggregator",
    title="Median of every coordinate",
    target="fedarena.defenses.aggregators.median:Median",
    paper="Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates (ICML)",
    authors="Yin, Chen, Kannan, Bartlett",
    year=2018,
    url="https://arxiv.org/abs/1803.01498",
    equations="Definition 1",
    check=(
        "no number of the paper; tests/defenses/aggregators holds it to the definition written with loops, and to ByzFL"
    ),
    facts=(
        ("needs", "n ≥ 2f + 1"),
        ("even n", "the mean of the two middle values; torch.median and byzpy 0.1.4 return the lower one"),
        ("device", "sorted on the CPU; tensors of other devices are copied there and back"),
    ),
)
