"""Card and options of `blended`."""

from dataclasses import dataclass

from fedarena.attacks.poisoning.helpers.usual_problem import USUAL
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of the blended backdoor."""

    target: int = option(0, "class that the trigger is to give", low=0)
    blend: float = option(0.2, "a, the pattern's share in an image that carries it", above=0, high=1)
    share: float = option(0.5, "probability with which a sample of a batch carries the trigger", above=0, high=1)
    pattern: int = option(0, "seed of the pattern", low=0)


CARD = Card(
    name="blended",
    kind="attack",
    goal="poisoning",
    form="paper",
    usual=USUAL,
    title="Blended: a backdoor that a faint pattern over the whole image opens",
    target="fedarena.attacks.poisoning.blended:Blended",
    options=Options,
    paper="Targeted Backdoor Attacks on Deep Learning Systems Using Data Poisoning",
    authors="Chen, Liu, Li, Lu, Song",
    year=2017,
    url="https://arxiv.org/abs/1712.05526",
    equations="Section 4.2.1, the blended injection strategy with a random pattern; a = 0.2",
    departures=(
        "The paper poisons a data set once; here a share of every batch of the corrupted clients.",
        "The same a is used in training and in the test.",
        "The label of every class but the target's is poisoned, and success is counted on all of them.",
    ),
    check="no number of the paper; the pattern by hand: tests/attacks/poisoning/test_backdoors.py",
    facts=(
        ("knows", "own: its own samples"),
        ("sends", "the protocol's own upload on the poisoned batch"),
        ("needs", "images"),
    ),
)
