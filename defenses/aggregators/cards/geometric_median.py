"""Card and options of `geometric-median`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of the geometric median."""

    iterations: int = option(20, "Weiszfeld iterations", low=0, high=100_000)
    eps: float = option(1e-6, "smoothing: distances to the current point are taken as no less than this", above=0)


CARD = Card(
    name="geometric-median",
    kind="aggregator",
    title="Geometric median (RFA, smoothed Weiszfeld)",
    target="fedarena.defenses.aggregators.geometric_median:GeometricMedian",
    options=Options,
    paper="Robust Aggregation for Federated Learning (IEEE Transactions on Signal Processing)",
    authors="Pillutla, Kakade, Harchaoui",
    year=2022,
    url="https://arxiv.org/abs/1912.13445",
    equations="The smoothed Weiszfeld algorithm",
    departures=(
        "Uploads have equal weights; RFA weighs them by N_c, which senders could inflate.",
        "RFA runs very few iterations because each is a round of secure aggregation; here the server holds the "
        "uploads and an iteration costs O(n²), so that 20 are the default.",
        "The first weights are 1/(median distance of the row to the rows), not equal ones: one upload of 1e30 would "
        "otherwise take dozens of iterations to leave behind.",
    ),
    check=(
        "no number of the paper; tests/defenses/aggregators holds it to the definition written with loops, and to "
        "ByzFL where both have converged"
    ),
    facts=(
        ("needs", "n ≥ 2f + 1; f is not used otherwise"),
        (
            "float32",
            "distances come from a Gram matrix: within about 3e-3 of the spread of the uploads, a distance of 0 is "
            "not distinguished",
        ),
    ),
)
