"""Card and options of `bucketing`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of bucketing."""

    s: int = option(2, "uploads a bucket", low=1)


CARD = Card(
    name="bucketing",
    kind="aggregator",
    title="Bucketing: means of random buckets before another rule",
    target="fedarena.defenses.aggregators.bucketing:Bucketing",
    options=Options,
    paper="Byzantine-Robust Learning on Heterogeneous Datasets via Bucketing (ICLR)",
    authors="Karimireddy, He, Jaggi",
    year=2022,
    url="https://arxiv.org/abs/2006.09365",
    equations="s-bucketing",
    check=(
        "no number of the paper; tests/defenses/aggregators holds it to the definition written with loops, and to "
        "ByzFL, given the same order of rows"
    ),
    facts=(
        ("wraps", "another rule, which gets ⌈n/s⌉ rows and the same f"),
        ("needs", "what the other rule needs at ⌈n/s⌉ and f: a corrupted upload spoils one bucket"),
        ("random", "the buckets are drawn: permuting uploads changes the result, but not its distribution"),
    ),
)
