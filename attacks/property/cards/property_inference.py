"""Card and options of `property-inference`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option

WITHIN_ROUNDS = ("classifier", "round-forest", "ridge")
"""Classifiers of single rounds, which learn from batches of their own."""


@dataclass(frozen=True)
class Options:
    """Options of property inference."""

    property: str = option("", "attribute of the data set that is to be inferred; empty: the first that it has")
    start: int = option(0, "first round attacked", low=0)
    rounds: int = option(100, "rounds attacked, of which at least 2", low=2)
    stride: int = option(1, "distance from one round attacked to the next", low=1)
    every: float = option(
        5.0,
        "the victim's samples have the property in one of so many attacked rounds; at least one round lacks it",
        low=1,
    )
    with_batches: int = option(
        2, "the attacker's own batches with the property, in each round attacked", low=1, idle_with=WITHIN_ROUNDS
    )
    without_batches: int = option(8, "the attacker's own batches without it", low=1, idle_with=WITHIN_ROUNDS)
    round_batches: int = option(
        32,
        "own batches of either kind for a classifier of one round",
        low=2,
        idle_with=("classifier", "forest"),
        form="adaptive",
    )
    match_classes: bool = option(
        True, "draw own samples with the property and without it with the same shares of the classes"
    )
    features: str = option(
        "best",
        "features of an update that a forest gets. `margins`: mean magnitudes by output and input with their ratios. "
        "`slopes`: how large each layer's inputs were, relative to own batches. `best`: in the paper form margins, in "
        "the adaptive form the better of the two on samples that the attacker held back. `plain`: all entries. "
        "`code`: the largest magnitudes by kernel and input, as in the authors' code",
        choices=("best", "margins", "slopes", "plain", "code"),
        idle_with=("classifier", "ridge"),
    )
    classifier: str = option(
        "best",
        "one forest for all rounds, which is the paper form's, a forest or a ridge in each round, or what does best on "
        "samples that the attacker held back",
        choices=("best", "forest", "round-forest", "ridge"),
        form="adaptive",
    )


CARD = Card(
    name="property-inference",
    version=4,
    aliases=("melis",),
    kind="attack",
    goal="property",
    title="Property inference: do the samples behind an update share a property unrelated to the task",
    target="fedarena.attacks.property.property_inference:PropertyInference",
    options=Options,
    paper="Exploiting Unintended Feature Leakage in Collaborative Learning (IEEE S&P)",
    authors="Melis, Song, De Cristofaro, Shmatikov",
    year=2019,
    url="https://arxiv.org/abs/1805.04049",
    equations="Algorithm 3, the passive attack on single batches (Section 4.4)",
    departures=(
        "Any observation is classified, not only gradients: the attacker's own updates are what the observation "
        "simulates of its own batches.",
        "Which rounds have the property is drawn, one in `every`; the authors' are every fifth, which counting finds.",
        "The attacker's samples with the property are all of its own; the authors mix further batches that have it "
        "in part.",
        "Own batches of either kind have the same shares of the classes, or few samples would teach the classes' "
        "shares: match_classes.",
        "In the adaptive form the attacker may classify within the round: if a protocol draws coordinates again in "
        "each round, what was learned in another round says nothing about this one.",
        "In that form a quarter of the attacker's samples is held back, to find the best classifier.",
        "Noise that the protocol adds is public; in the adaptive form the attacker takes it into account.",
        "The forest gets mean magnitudes by output and input and their ratios, for which fewer samples suffice. The "
        "authors' largest magnitudes are features=code, without their standardising, which has no effect on a forest. "
        "A sketch preserves features=slopes, one number for each layer. In the adaptive form the attacker finds out "
        "which of the two is better (features=best). In the paper form it cannot, because its own updates never went "
        "through the protocol.",
    ),
    check="Section 6.2: AUC near 1 with two clients; DBCL, Appendix A.2: 1.0 plain: bench reproduce dbcl/property",
    facts=(
        ("goal", "property: one bit for each round attacked"),
        ("knows", "samples of its own with their attributes: the held-out data; a client also its shard"),
        (
            "the experiment",
            "in attacked rounds the first client other than the attacker works only on samples with the property, or "
            "only on samples without it; all other clients work on samples without it. Poisson batches then have the "
            "nominal size, for which a guarantee that rests on sampling does not hold. If too few samples have the "
            "property, or lack it, the batch is drawn with replacement: a sample that it holds twice leaves a trace",
        ),
        ("reads", "any view that offers a simulator of what was observed"),
    ),
    usual=(("model", "mlp"), ("batch_size", "64"), ("lr", "0.1"), ("rounds", "120")),
)
