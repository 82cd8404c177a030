"""Card and options of `dnc`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of DnC."""

    iterations: int = option(5, "times that outliers are dropped, each on its own coordinates", low=1, high=1000)
    coordinates: int = option(10_000, "coordinates drawn each time; all when there are fewer", low=1)
    c: float = option(1.0, "rows dropped each time, over f", low=0)


CARD = Card(
    name="dnc",
    kind="aggregator",
    title="DnC: drops outliers along the top singular vector",
    target="fedarena.defenses.aggregators.dnc:DnC",
    options=Options,
    paper="Manipulating the Byzantine: Optimizing Model Poisoning Attacks and Defenses for Federated Learning (NDSS)",
    authors="Shejwalkar, Houmansadr",
    year=2021,
    url="https://www.ndss-symposium.org/ndss-paper/manipulating-the-byzantine-optimizing-model-poisoning-attacks-and-defenses-for-federated-learning/",
    equations="Divide-and-conquer aggregation",
    departures=(
        "The intersection of the sets kept can be empty; then the mean is over the rows that were kept most often.",
        "⌈c·f⌉ rows are dropped each time.",
        "The defaults are those that implementations by others share; not checked against the paper.",
    ),
    check=(
        "no number of the paper; tests/defenses/aggregators holds it to the definition written with loops and "
        "numpy's singular vectors; ByzFL has none"
    ),
    facts=(
        ("needs", "n ≥ 2f + 1 and n > ⌈c·f⌉"),
        (
            "limits",
            "outliers are measured from the mean of all rows: one upload of 1e18 hides another of 1e6, which is then "
            "averaged in",
        ),
        ("random", "coordinates are drawn, not rows: the same draw for any order of the uploads"),
    ),
)
