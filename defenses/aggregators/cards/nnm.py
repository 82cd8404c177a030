"""Card of `nnm`."""

from fedarena.core.card import Card

CARD = Card(
    name="nnm",
    kind="aggregator",
    title="NNM: nearest neighbour mixing before another rule",
    target="fedarena.defenses.aggregators.nnm:NNM",
    paper="Fixing by Mixing: A Recipe for Optimal Byzantine ML under Heterogeneity (AISTATS)",
    authors="Allouah, Farhadkhani, Guerraoui, Gupta, Pinot, Stephan",
    year=2023,
    url="https://arxiv.org/abs/2302.01772",
    equations="Nearest neighbour mixing: each row ↦ the mean of its n − f nearest, itself included",
    check=(
        "no number of the paper; tests/defenses/aggregators holds it to the definition written with loops, and to ByzFL"
    ),
    facts=(
        ("wraps", "another rule"),
        ("needs", "n ≥ 2f + 1 and what the other rule needs"),
    ),
)
