"""Card and options of `multi-krum`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of Multi-Krum."""

    m: int | None = option(None, "uploads averaged; none: n − f", low=1)


CARD = Card(
    name="multi-krum",
    kind="aggregator",
    title="Multi-Krum: the mean of the m uploads with the smallest Krum scores",
    target="fedarena.defenses.aggregators.multi_krum:MultiKrum",
    options=Options,
    paper="Machine Learning with Adversaries: Byzantine Tolerant Gradient Descent (NeurIPS)",
    authors="Blanchard, El Mhamdi, Guerraoui, Stainer",
    year=2017,
    url="https://arxiv.org/abs/1703.02757",
    equations="Multi-Krum",
    departures=(
        "A row's neighbourhood is the n − f − 2 rows nearest to it, not counting itself, as in the paper. ByzFL "
        "0.0.11 and byzpy 0.1.4 take n − f − 1, so that f = k here is f = k + 1 there.",
        "m is n − f unless given, which is the usual choice and the most that need not include a corrupted upload.",
    ),
    check=(
        "no number of the paper; tests/defenses/aggregators holds it to the definition written with loops, and to "
        "ByzFL, whose f + 1 is this f"
    ),
    facts=(
        ("needs", "n ≥ 2f + 3, m ≤ n − f"),
        ("ties", "the row closest to all rows, then the first; the paper: the first"),
    ),
)
