"""Card and options of `norm-bounding`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of norm bounding."""

    bound: float | None = option(
        None, "norm M that uploads are clipped to; none: the median of the round's norms", above=0
    )


CARD = Card(
    name="norm-bounding",
    kind="aggregator",
    title="Norm bounding: the mean of uploads clipped to a norm",
    target="fedarena.defenses.aggregators.norm_bounding:NormBounding",
    options=Options,
    paper="Can You Really Backdoor Federated Learning?",
    authors="Sun, Kairouz, Suresh, McMahan",
    year=2019,
    url="https://arxiv.org/abs/1911.07963",
    equations="Norm thresholding of updates: (1/n) Σ x_i min(1, M/‖x_i‖)",
    departures=(
        "The bound is by default the median of the round's norms: the paper's is a constant for one model and one "
        "attacker.",
        "The paper's weak differential privacy (Gaussian noise on the mean) is a defense of its own and not added.",
    ),
    check=(
        "no number of the paper; tests/defenses/aggregators holds it to the definition written with loops, and to "
        "ByzFL's average of clipped rows"
    ),
    facts=(
        ("needs", "n ≥ 2f + 1 for the median of norms; any f with a bound"),
        ("limits", "it bounds what corrupted uploads add, f/n of M each round, and filters none"),
    ),
)
