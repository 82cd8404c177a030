"""Card and options of `edge-case`."""

from dataclasses import dataclass

from fedarena.attacks.poisoning.helpers.usual_problem import USUAL
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of the edge-case backdoor."""

    source: int = option(7, "class whose rare samples are poisoned", low=0)
    target: int = option(1, "class that they are to be taken for", low=0)
    tail: float = option(0.1, "share of the source's samples that counts as rare", above=0, high=1)
    share: float = option(0.5, "probability with which a sample of a batch is replaced by a rare one", above=0, high=1)


CARD = Card(
    name="edge-case",
    kind="attack",
    goal="poisoning",
    form="paper",
    usual=USUAL,
    title="Edge-case backdoor: rare samples of one class are taken for another",
    target="fedarena.attacks.poisoning.edge_case:EdgeCase",
    options=Options,
    paper="Attack of the Tails: Yes, You Really Can Backdoor Federated Learning (NeurIPS)",
    authors="Wang, Sreenivasan, Rajput, Vishwakarma, Agarwal, Sohn, Lee, Papailiopoulos",
    year=2020,
    url="https://arxiv.org/abs/2007.05084",
    equations="Section 3, black-box attack; source 7 and target 1 are those of its Ardis images in EMNIST",
    departures=(
        "The paper takes its tail from another data set (Ardis, Southwest airplanes). Here it is the share of the "
        "source's samples that lie farthest from the mean of the colluders' own samples of the class, in pixels.",
        "In digit-domains, of the farthest tenth of the training samples of class 7, 57 % are from USPS and 18 % from "
        "digits, which have 9 % and 2 % of the class. They stand for the paper's digits of another origin.",
        "Honest clients may hold samples of the tail, too, with the right label.",
        "The projection onto a ball around the broadcast (PGD) is an option of the wrapper: model-replacement+"
        "edge-case with ball.",
    ),
    check="the tail by hand: tests/attacks/poisoning/test_backdoors.py",
    facts=(
        ("knows", "own: its own samples"),
        ("sends", "the protocol's own upload on the poisoned batch"),
        ("success", "counted on the held-out samples of the tail alone, unchanged"),
    ),
)
