"""Card and options of `label-flip`."""

from dataclasses import dataclass

from fedarena.attacks.poisoning.helpers.usual_problem import USUAL
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of label flipping."""

    labels: str = option(
        "reverse",
        "reverse: class I becomes H − 1 − I; random: any other class; one: every class becomes target",
        choices=("reverse", "random", "one"),
    )
    target: int = option(0, "class that all samples get", low=0, acts_with=("labels", "one"), listed=False)
    samples: str = option(
        "batch",
        "what a corrupted client trains on: its whole batch, or one sample a round from the colluders' pool",
        choices=("batch", "one"),
    )


CARD = Card(
    name="label-flip",
    version=2,
    kind="attack",
    goal="poisoning",
    form="paper",
    usual=USUAL,
    title="Label flipping: train on wrong labels",
    target="fedarena.attacks.poisoning.label_flip:LabelFlip",
    options=Options,
    paper="Local Model Poisoning Attacks to Byzantine-Robust Federated Learning (USENIX Security)",
    authors="Fang, Cao, Jia, Gong",
    year=2020,
    url="https://arxiv.org/abs/1911.11815",
    equations="Section 5.1, label flipping attack; the form of Xiang et al. (SIGMOD 2023), Section 3.2",
    departures=(
        "samples=one is the code released with Xiang et al.: a corrupted client feeds one sample a round. Where the "
        "protocol divides a sum by the batch size b, its signal is b times weaker; where it takes a mean it is not.",
        "That code draws the one sample from the whole training set; here from what the corrupted clients hold.",
        "With an odd number of classes reverse leaves the middle class as it is, as in the papers.",
        "labels=one is in neither paper: one class for all samples, as in released code of other studies.",
    ),
    check="no number of the papers; tests/attacks/poisoning/test_label_flip.py",
    facts=(
        ("knows", "own: nothing but its own samples"),
        ("sends", "the protocol's own upload on the flipped batch, noise and momentum included"),
    ),
)
