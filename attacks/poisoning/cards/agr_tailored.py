"""Card and options of `agr-tailored`."""

from dataclasses import dataclass

from fedarena.attacks.poisoning.helpers.usual_problem import USUAL
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of the AGR-tailored attack."""

    perturbation: str = option(
        "unit",
        "p, the direction away from the mean μ: unit −μ/‖μ‖, sign −sign(μ), std −σ",
        choices=("unit", "sign", "std"),
    )


CARD = Card(
    name="agr-tailored",
    kind="attack",
    goal="poisoning",
    form="paper",
    usual=USUAL,
    title="AGR-tailored: the farthest step that the server's own rule lets through",
    target="fedarena.attacks.poisoning.agr_tailored:AGRTailored",
    options=Options,
    paper="Manipulating the Byzantine: Optimizing Model Poisoning Attacks and Defenses for Federated Learning (NDSS)",
    authors="Shejwalkar, Houmansadr",
    year=2021,
    url="https://www.ndss-symposium.org/ndss-paper/manipulating-the-byzantine-optimizing-model-poisoning-attacks-and-"
    "defenses-for-federated-learning/",
    equations="Section IV, Algorithm 1 with the rule known",
    departures=(
        "The paper states a constraint for each rule. This attack takes the general objective, the distance of the "
        "aggregate from the honest mean, for every rule, as implementations by others do for the median.",
        "The first γ, 10, is compared with γ = 0. Implementations by others compare it with −1, so that it always "
        "counts as a success and the search never falls below 10.",
        "Of all γ that the search has tried the most harmful is sent; the authors send the last one that was better "
        "than the one before.",
        "A rule with a memory, with draws or with a reference of the server's is treated as by opt-alie.",
    ),
    check="no number of the paper; tests/attacks/poisoning/test_known_rule.py",
    facts=(
        ("knows", "omniscient: the honest uploads; the rule, and how many corrupted clients it expects"),
        ("needs", "an aggregation rule, or a mean"),
        ("sends", "the same upload from every colluder; never more than 20 p from the mean"),
    ),
)
