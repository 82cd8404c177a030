"""Card and options of `last-layer-label`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of label inference from the output layer."""

    rounds: int = option(25, "first rounds of the training that are attacked", low=1)
    evidence: str = option(
        "bias",
        "what is read of the output layer: its bias, or its rows, on which noise has less effect if features are large",
        choices=("bias", "rows"),
    )


CARD = Card(
    name="last-layer-label",
    kind="attack",
    goal="labels",
    title="Labels from the output layer's gradient",
    target="fedarena.attacks.labels.last_layer_label:LastLayerLabel",
    options=Options,
    paper="iDLG: Improved Deep Leakage from Gradients",
    authors="Zhao, Mopuri, Bilen",
    year=2020,
    url="https://arxiv.org/abs/2001.02610",
    equations="Section 3.1: the class of one sample is the one whose gradient has the other sign",
    departures=(
        "The bias, or rows summed with the bias, is read in place of products of two rows, which noise would spoil.",
        "Estimates of the gradient are read too, where the output layer does not cross the wire.",
        "Batches: counts of the classes by largest remainders, under uniform predictions.",
    ),
    check="one sample, exact gradient: every label, tests/attacks/labels/test_last_layer_label.py",
    facts=(
        ("goal", "labels: the classes behind each observation, as a multiset"),
        ("reads", "the output layer's gradient, as seen or as estimated"),
        ("model", "evidence=rows takes the last features to be nowhere negative, as after ReLU and sigmoid"),
        (
            "loss",
            "with mse the gradients show output less label, so that outputs far from 0 are taken for classes; with one "
            "output for all classes, and for numbers, n/a",
        ),
        ("training", "counts of a batch assume uniform predictions, and get worse with every round of training"),
    ),
)
