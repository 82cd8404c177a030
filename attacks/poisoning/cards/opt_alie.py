"""Card and options of `opt-alie`."""

from dataclasses import dataclass

from fedarena.attacks.poisoning.helpers.search_options import SearchOptions
from fedarena.attacks.poisoning.helpers.usual_problem import USUAL
from fedarena.core.card import Card


@dataclass(frozen=True)
class Options(SearchOptions):
    """Options of Opt-ALIE."""


CARD = Card(
    name="opt-alie",
    kind="attack",
    goal="poisoning",
    form="paper",
    usual=USUAL,
    title="Opt-ALIE: ALIE searched against the server's own rule in every round",
    target="fedarena.attacks.poisoning.opt_alie:OptALIE",
    options=Options,
    paper="Fixing by Mixing: A Recipe for Optimal Byzantine ML under Heterogeneity (AISTATS)",
    authors="Allouah, Farhadkhani, Guerraoui, Gupta, Pinot, Stephan",
    year=2023,
    url="https://arxiv.org/abs/2302.01772",
    equations="the optimised ALIE of the experiments; the search is that of the ByzFL library",
    departures=(
        "The colluders send μ + τσ with τ ≥ 0 and σ with divisor n − 1, as ByzFL does; Baruch et al. subtract.",
        "A rule with a memory is run on what was sent, so that the attacker's copy has the server's memory. In rounds "
        "without a colluder the attacker sees nothing, and its copy stays as it is.",
        "A rule that draws at random draws anew for the attacker. A rule with a reference of the server's gets one "
        "from the colluders' own samples.",
    ),
    check="the same upload as ByzFL's for its trimmed mean, median and Krum: "
    "tests/attacks/poisoning/test_known_rule.py",
    facts=(
        ("knows", "omniscient: the honest uploads; the rule, and how many corrupted clients it expects"),
        ("needs", "an aggregation rule, or a mean"),
        ("sends", "the same upload from every colluder"),
    ),
)
