"""Card and options of `ipm`."""

from dataclasses import dataclass

from fedarena.attacks.poisoning.helpers.tuning_options import TuningOptions
from fedarena.attacks.poisoning.helpers.usual_problem import USUAL
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(TuningOptions):
    """Options of inner product manipulation."""

    epsilon: float = option(
        10.0, "ε of the upload −ε·mean; small values pass rules that compare distances, large ones move means", above=0
    )


CARD = Card(
    name="ipm",
    kind="attack",
    goal="poisoning",
    form="paper",
    usual=USUAL,
    title="IPM: inner product manipulation",
    target="fedarena.attacks.poisoning.ipm:IPM",
    options=Options,
    paper="Fall of Empires: Breaking Byzantine-tolerant SGD by Inner Product Manipulation (UAI)",
    authors="Xie, Koyejo, Gupta",
    year=2019,
    url="https://arxiv.org/abs/1903.03936",
    equations="Section 4, the attack −ε·(mean of the honest gradients)",
    departures=(
        "The paper's attacker sees the honest uploads (knows=omniscient); with knows=own the mean is that of what the "
        "colluders would have sent.",
        "One default ε cannot serve every rule: tune=N lets the attacker choose it on simulated runs.",
    ),
    check="no number of the paper; tests/attacks/poisoning/test_ipm.py",
    facts=(
        ("knows", "omniscient: the mean of the honest uploads; own: the mean of its own honest uploads"),
        ("sends", "the same upload from every colluder"),
    ),
)
