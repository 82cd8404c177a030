"""Card of `mean`."""

from fedarena.core.card import Card

CARD = Card(
    name="mean",
    kind="aggregator",
    title="Unweighted mean of the uploads",
    target="fedarena.defenses.aggregators.mean:Mean",
    paper="Communication-Efficient Learning of Deep Networks from Decentralized Data (AISTATS)",
    authors="McMahan, Moore, Ramage, Hampson, Agüera y Arcas",
    year=2017,
    url="https://arxiv.org/abs/1602.05629",
    equations="Algorithm 1, with equal weights",
    check=(
        "no number of the paper; tests/defenses/aggregators holds it to the definition written with loops, and to ByzFL"
    ),
    facts=(
        ("formula", "(1/n) Σ x_i"),
        ("defends", "nothing: one corrupted upload moves it anywhere; wrappers can end in it"),
        ("weights", "N_c is ignored, unlike in the protocol's own mean without a rule"),
    ),
)
