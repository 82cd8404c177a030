"""Card and options of `fltrust`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of FLTrust."""

    root: int = option(10, "samples per class that the server holds", low=1)


CARD = Card(
    name="fltrust",
    kind="aggregator",
    title="FLTrust: uploads weighed by their cosine with the server's own",
    target="fedarena.defenses.aggregators.fltrust:FLTrust",
    options=Options,
    paper="FLTrust: Byzantine-robust Federated Learning via Trust Bootstrapping (NDSS)",
    authors="Cao, Fang, Liu, Gong",
    year=2021,
    url="https://arxiv.org/abs/2012.13995",
    equations="TS_i = ReLU(cos(x_i, g_0)); the mean weighed by TS_i of uploads rescaled to ‖g_0‖",
    departures=(
        "Without any trusted upload the aggregate is 0 (no step); the formula would divide by 0.",
        "A row of zeros has no direction and is not trusted.",
    ),
    check=(
        "no number of the paper; tests/defenses/aggregators holds it to the definition written with loops; ByzFL "
        "has none"
    ),
    facts=(
        ("needs", "samples at the server; any f, which is not used"),
        ("paper", "100 samples in all, of ten classes"),
    ),
)
