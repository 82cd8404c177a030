"""Card and options of `min-sum`."""

from dataclasses import dataclass

from fedarena.attacks.poisoning.helpers.usual_problem import USUAL
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of Min-Sum."""

    perturbation: str = option(
        "unit",
        "p, the direction away from the mean μ: unit −μ/‖μ‖, sign −sign(μ), std −σ",
        choices=("unit", "sign", "std"),
    )
    bound: str = option(
        "min",
        "which honest upload's sum of squared distances is the bound: the smallest or the largest",
        choices=("min", "max"),
    )


CARD = Card(
    name="min-sum",
    kind="attack",
    goal="poisoning",
    form="paper",
    usual=USUAL,
    title="Min-Sum: the farthest step that summed distances allow",
    target="fedarena.attacks.poisoning.min_sum:MinSum",
    options=Options,
    paper="Manipulating the Byzantine: Optimizing Model Poisoning Attacks and Defenses for Federated Learning (NDSS)",
    authors="Shejwalkar, Houmansadr",
    year=2021,
    url="https://www.ndss-symposium.org/ndss-paper/manipulating-the-byzantine-optimizing-model-poisoning-attacks-and-"
    "defenses-for-federated-learning/",
    equations="Section IV, the Min-Sum attack for an attacker that does not know the rule",
    departures=(
        "γ is the largest one allowed, in closed form. The authors halve steps from 10 until they are below 1e-5 and "
        "so never pass 20, which binds where uploads are long, such as under DP noise.",
        "bound=min is the authors' released code; bound=max takes the paper's words, the sum of any benign gradient, "
        "for the largest.",
        "σ is the standard deviation with divisor n; with p = −σ its scale cancels out.",
    ),
    check="no number of the paper; γ held to the authors' halving search: "
    "tests/attacks/poisoning/helpers/test_min_distance.py",
    facts=(
        ("knows", "omniscient: the honest uploads; own: what the colluders would have sent themselves"),
        ("needs", "two corrupted clients with knows=own; a round in which one alone takes part gets its honest upload"),
        ("sends", "the same upload from every colluder"),
    ),
)
