"""Card and options of `signguard`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of SignGuard."""

    low: float = option(0.1, "smallest norm kept, over the median norm (L)", low=0, high=1)
    high: float = option(3.0, "largest norm kept, over the median norm (R)", low=2)
    share: float = option(0.1, "share of the coordinates whose signs are counted", above=0, high=1)


CARD = Card(
    name="signguard",
    version=2,
    kind="aggregator",
    title="SignGuard: norm filter and clusters of sign statistics",
    target="fedarena.defenses.aggregators.signguard:SignGuard",
    options=Options,
    paper="Byzantine-robust Federated Learning through Collaborative Malicious Gradient Filtering (ICDCS)",
    authors="Xu, Huang, Song, Lan",
    year=2022,
    url="https://arxiv.org/abs/2109.05872",
    equations="SignGuard without the similarity features (neither SignGuard-Sim nor SignGuard-Dist)",
    departures=(
        "Coordinates are drawn one by one; implementations by others take a window of neighbouring ones.",
        "Sign shares are divided by the largest of their kind, and mean shift runs with bin seeding and a bandwidth "
        "of quantile 0.5, as implementations by others do.",
        "Where S1 ∩ S2 is empty, S1 is averaged; where the bandwidth is 0 (fewer than four uploads, or most alike), "
        "all are one cluster.",
    ),
    check=(
        "no number of the paper; tests/defenses/aggregators holds it to the definition written with loops and "
        "scikit-learn's mean shift; ByzFL has none"
    ),
    facts=(
        ("needs", "n ≥ 2f + 1; f is not used otherwise"),
        ("random", "coordinates are drawn, not rows: the same draw for any order of the uploads"),
    ),
)
