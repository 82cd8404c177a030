"""Card and options of `opt-ipm`."""

from dataclasses import dataclass

from fedarena.attacks.poisoning.helpers.search_options import SearchOptions
from fedarena.attacks.poisoning.helpers.usual_problem import USUAL
from fedarena.core.card import Card


@dataclass(frozen=True)
class Options(SearchOptions):
    """Options of Opt-IPM."""


CARD = Card(
    name="opt-ipm",
    kind="attack",
    goal="poisoning",
    form="paper",
    usual=USUAL,
    title="Opt-IPM: IPM searched against the server's own rule in every round",
    target="fedarena.attacks.poisoning.opt_ipm:OptIPM",
    options=Options,
    paper="Fixing by Mixing: A Recipe for Optimal Byzantine ML under Heterogeneity (AISTATS)",
    authors="Allouah, Farhadkhani, Guerraoui, Gupta, Pinot, Stephan",
    year=2023,
    url="https://arxiv.org/abs/2302.01772",
    equations="the optimised Fall of Empires of the experiments; the search is that of the ByzFL library",
    departures=(
        "A rule with a memory, with draws or with a reference of the server's is treated as by opt-alie.",
        "τ = 0 is among the strengths, as in ByzFL: an upload of zeros.",
    ),
    check="the same upload as ByzFL's for its trimmed mean, median and Krum: "
    "tests/attacks/poisoning/test_known_rule.py",
    facts=(
        ("knows", "omniscient: the honest uploads; the rule, and how many corrupted clients it expects"),
        ("needs", "an aggregation rule, or a mean"),
        ("sends", "the same upload from every colluder"),
    ),
)
