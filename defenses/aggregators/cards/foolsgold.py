"""Card and options of `foolsgold`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of FoolsGold."""

    confidence: float = option(1.0, "κ, slope of the logit", above=0)
    divide: str = option(
        "weights", "Σ α_i x_i is divided by Σ α_i, or by the number of uploads", choices=("weights", "clients")
    )


CARD = Card(
    name="foolsgold",
    kind="aggregator",
    title="FoolsGold: clients with alike histories lose their weight",
    target="fedarena.defenses.aggregators.foolsgold:FoolsGold",
    options=Options,
    paper="The Limitations of Federated Learning in Sybil Settings (RAID)",
    authors="Fung, Yoon, Beschastnikh",
    year=2020,
    url="https://arxiv.org/abs/1808.04866",
    equations="Algorithm 1",
    departures=(
        "All coordinates count: the paper's filter of indicative features of the output layer is left out. The "
        "released code has it switched off by default.",
        "Algorithm 1 adds Σ α_i Δ_i without dividing. Here it is divided, so that the learning rate keeps its "
        "meaning: by Σ α_i, as FL-Byzantine-Library does. With divide=clients it is divided by n, so that α_i is a "
        "factor on a client's share of a mean.",
        "Where all histories are alike, all weigh the same: the released code divides by 0 there. Where none of a "
        "round's participants has a weight, they weigh the same.",
        "The released code cuts uploads to length 1 before it adds them to the history, and adds 1e-5 to the largest "
        "similarity; Algorithm 1 does neither, and nor does this. FL-Byzantine-Library forgets what is older than 10 "
        "rounds.",
    ),
    check=(
        "no number of the paper. A test in tests/defenses/aggregators holds it to Algorithm 1 written with loops over "
        "rounds with absent clients. Another shows on 20 clients with digits what it stops and what it does not"
    ),
    facts=(
        ("needs", "clients that differ; f is not used"),
        ("memory", "the sum of all uploads of every client, by its number"),
        ("stops", "4 of 20 iid clients with one pixel trigger: success 97 % without it, 0 % with it"),
        (
            "fails",
            "a single label flipper among 19 iid clients: 60 % of the honest uploads get no weight, the flipper 25 %, "
            "accuracy 71 % in place of 91 %. With data sorted by class honest clients of one class look like sybils: "
            "48 % in place of 91 % without any attack.",
        ),
    ),
)
