"""Card and options of `delayed`."""

from dataclasses import dataclass

from fedarena.attacks.poisoning.helpers.tuning_options import TuningOptions
from fedarena.attacks.poisoning.helpers.usual_problem import USUAL
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(TuningOptions):
    """Options of a delayed attack."""

    start: float = option(0.2, "τ: honest for this share of the scheduled rounds, then the attack", low=0, high=1)


CARD = Card(
    name="delayed",
    kind="attack",
    goal="poisoning",
    form="paper",
    usual=USUAL,
    title="Delayed: honest at first, then another attack (delayed+ATTACK)",
    target="fedarena.attacks.poisoning.delayed:Delayed",
    options=Options,
    paper="Practical Differentially Private and Byzantine-resilient Federated Learning (SIGMOD)",
    authors="Xiang, Wang, Lin, Wang",
    year=2023,
    url="https://arxiv.org/abs/2304.09762",
    equations="Section 5.2, adaptive attack; Table 5: TTBB (time to be Byzantine) is start",
    departures=(
        "The paper's colluders copy the uploads of random honest workers while they wait: knows=omniscient. With "
        "knows=own they follow the protocol on their own samples.",
        "With start=1 it would never attack, so it is not applicable.",
    ),
    check="Table 5, label flipping by 60 %, MNIST, ε = 2: the two-stage protocol stays at .96 for TTBB 0 to 0.8; "
    "here at .88 to .92 (bench reproduce two-stage/table5). A test holds it to its definition: "
    "tests/attacks/poisoning/test_delayed.py",
    facts=(
        ("knows", "what the attack inside knows; omniscient: also the honest uploads that it copies while it waits"),
        ("tunes", "start, after the attack inside has chosen its strength"),
        ("wraps", "another poisoning attack, as in delayed+label-flip"),
    ),
)
