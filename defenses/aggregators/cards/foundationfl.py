"""Card and options of `foundationfl`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of FoundationFL."""

    copies: int | None = option(None, "m, copies that are added; none: half as many as uploads", low=1)


CARD = Card(
    name="foundationfl",
    kind="aggregator",
    title="FoundationFL: copies of the upload farthest from the extremes before another rule",
    target="fedarena.defenses.aggregators.foundationfl:FoundationFL",
    options=Options,
    paper="Do We Really Need to Design New Byzantine-robust Aggregation Rules? (NDSS)",
    authors="Fang, Nabavirazavi, Liu, Sun, Iyengar, Yang",
    year=2025,
    url="https://arxiv.org/abs/2501.17381",
    equations="synthetic updates: m copies of x_i*, i* = argmax min(‖x_i − max‖, ‖x_i − min‖), before Trimmed-mean or "
    "Median",
    departures=(
        "Any rule may stand behind it, not only trimmed-mean and median.",
        "The inner rule assumes the same f among the n + m rows, as in FL-Byzantine-Library.",
    ),
    check=(
        "no number of the paper; tests/defenses/aggregators holds it to the definition written with loops; ByzFL has "
        "none"
    ),
    facts=(
        ("wraps", "another rule, which gets n + m rows and the same f"),
        ("needs", "n ≥ 2f + 1 and what the other rule needs at n + m and f"),
        ("stops", "alie and min-sum of 8 of 20 clients, which leave the median 35 and 26 % accuracy: 91 and 90 %"),
        (
            "limits",
            "Corrupted uploads may be the ones that are copied. Where 4 of 20 clients flip the sign and send ten times "
            "as much, accuracy is 40 % behind it and 91 % with the median alone. Two colluders suffice: one sends the "
            "extremes, the other something between them and the honest ones, and is copied m times. A median holds "
            "then, a trimmed mean does not.",
        ),
    ),
)
