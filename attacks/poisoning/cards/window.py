"""Card and options of `window`."""

from dataclasses import dataclass

from fedarena.attacks.poisoning.helpers.usual_problem import USUAL
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of a window."""

    start: float = option(0.2, "share of the scheduled rounds after which the attack begins", low=0, below=1)
    end: float = option(0.6, "share of the scheduled rounds after which it stops", above=0, high=1)


CARD = Card(
    name="window",
    kind="attack",
    goal="poisoning",
    form="paper",
    usual=USUAL,
    title="Window: another attack for some rounds, honest before and after (window+ATTACK)",
    target="fedarena.attacks.poisoning.window:Window",
    options=Options,
    paper="Neurotoxin: Durable Backdoors in Federated Learning (ICML)",
    authors="Zhang, Panda, Song, Yang, Mahoney, Mittal, Ramchandran, Gonzalez",
    year=2022,
    url="https://arxiv.org/abs/2206.10341",
    equations="Section 4: the attacker takes part for some rounds, and lifespan is counted after them",
    departures=(
        "The paper's attackers are not drawn any more after the window. Here they go on, and follow the protocol on "
        "their own samples.",
        "Lifespan is counted until the success is below half of that at the window's end; the paper's threshold is a "
        "fixed accuracy of the backdoor.",
    ),
    check="its rounds by hand: tests/attacks/poisoning/test_window.py",
    facts=(
        ("knows", "what the attack inside knows"),
        ("gives", "lifespan, for attacks inside with a trigger, where the model is evaluated every few rounds"),
        ("wraps", "another poisoning attack, as in window+dba"),
    ),
)
