"""Card and options of `fldetector`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of FLDetector."""

    window: int = option(10, "N: steps behind the Hessian, and rounds that a score is averaged over", low=1, high=100)
    references: int = option(20, "draws of the gap statistic (B)", low=2)


CARD = Card(
    name="fldetector",
    kind="aggregator",
    title="FLDetector: clients whose uploads contradict their past are left out",
    target="fedarena.defenses.aggregators.fldetector:FLDetector",
    options=Options,
    paper="FLDetector: Defending Federated Learning Against Model Poisoning Attacks via Detecting Malicious Clients "
    "(KDD)",
    authors="Zhang, Cao, Jia, Gong",
    year=2022,
    url="https://arxiv.org/abs/2207.09209",
    equations="predicted updates by L-BFGS, suspicious scores, gap statistic and 2-means",
    departures=(
        "The paper removes the detected clients for good and starts the training again. A rule cannot: here they are "
        "left out of the round, and judged anew in the next one.",
        "A step of the model counts as minus the aggregate. With a constant learning rate of plain SGD this is exact; "
        "with a schedule, momentum or Adam at the server it is not.",
        "A client that missed rounds is predicted from its last upload and the model's movement since; in the paper "
        "all take part in every round.",
        "Groups of scores are found exactly, not by Lloyd's iterations. Whether the gap statistic's k is above 1 "
        "depends on k = 1 and 2 alone, so that no other k is tried.",
        "B is 20 as in FLPoison; the released code draws 10.",
        "Where too few would be left for the inner rule, nobody is left out.",
    ),
    check=(
        "no number of the paper. A test in tests/defenses/aggregators holds its Hessian to BFGS updates of a full "
        "matrix, its groups to all partitions, and the rule to the algorithm written with loops over rounds with "
        "absent clients"
    ),
    facts=(
        ("wraps", "another rule, which gets the uploads that stay"),
        ("needs", "n ≥ 2f + 1 and what the other rule needs; f is not used otherwise"),
        ("memory", "every client's last upload, N steps of the model, N changes of the aggregate"),
        (
            "stops",
            "a pixel trigger five times as long of 4 of 20 clients: success 90 % with the geometric median, 1 % with "
            "this before it",
        ),
        (
            "fails",
            "where colluders are easier to predict than small batches: of min-max it leaves out no corrupted and 76 % "
            "of the honest uploads, accuracy 10 % in place of 90 %",
        ),
        ("begins", "N + 1 rounds without scores, then N of scoring: the first 2N rounds nobody is left out"),
    ),
)
