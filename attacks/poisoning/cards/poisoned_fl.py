"""Card and options of `poisoned-fl`."""

from dataclasses import dataclass

from fedarena.attacks.poisoning.helpers.usual_problem import USUAL
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of PoisonedFL."""

    scale: float = option(8.0, "c at first, the length of an upload over that of the server's last step", above=0)
    window: int = option(50, "rounds between two tests whether the model moves the attacker's way", low=1)


CARD = Card(
    name="poisoned-fl",
    kind="attack",
    goal="poisoning",
    form="paper",
    usual=USUAL,
    title="PoisonedFL: fake clients without data push the model one way, round after round",
    target="fedarena.attacks.poisoning.poisoned_fl:PoisonedFL",
    options=Options,
    paper="Model Poisoning Attacks to Federated Learning via Multi-Round Consistency (CVPR)",
    authors="Xie, Fang, Gong",
    year=2025,
    url="https://arxiv.org/abs/2404.15611",
    equations="Section 4: the magnitude of a malicious update, and the adjustment of c by a binomial test",
    departures=(
        "The server's last step is read off two broadcasts; where only a share of the clients takes part, off the last "
        "two that a fake client was sent. The window counts these.",
        "In the first round that it sees it sends zeros, because there is no step to measure.",
        "The released code takes the sign of a parameter itself where it did not move; here such a parameter does not "
        "agree.",
    ),
    check="the binomial thresholds of the released code, and the upload by hand: "
    "tests/attacks/poisoning/test_poisoned_fl.py",
    facts=(
        ("knows", "none: the broadcasts, and no data"),
        ("needs", "broadcasts that show the model in clear"),
        ("sends", "the same upload from every fake client"),
    ),
)
