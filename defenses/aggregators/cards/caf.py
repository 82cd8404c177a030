"""Card of `caf`."""

from fedarena.core.card import Card

CARD = Card(
    name="caf",
    kind="aggregator",
    title="CAF: the covariance-bound agnostic filter",
    target="fedarena.defenses.aggregators.caf:CAF",
    paper="Towards Trustworthy Federated Learning with Untrusted Participants (ICML)",
    authors="Allouah, Guerraoui, Stephan",
    year=2025,
    url="https://arxiv.org/abs/2505.01874",
    equations="Algorithm 2, CAF; CafCor's correlated noise is not part of it",
    departures=(
        "The eigenvector is exact. ByzFL takes one power iteration from a random start.",
        "Rows whose weight has become 0 do not count for the largest τ. In ByzFL they do, so that one far row keeps "
        "the weights of all others from falling, and its loop from ending, if f is 2 or more.",
        "For f = 0 it is the mean; ByzFL returns nothing there.",
    ),
    check=(
        "no number of the paper; tests/defenses/aggregators holds it to the definition written with loops, and to "
        "ByzFL on uploads along one line, where its power iteration is exact"
    ),
    facts=(("needs", "n ≥ 2f + 1; f = 0 is the mean"),),
)
