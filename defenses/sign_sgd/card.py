"""Card of `sign-sgd`."""

from fedarena.core.card import Card

CARD = Card(
    name="sign-sgd",
    kind="defense",
    title="signSGD: a sign for each entry of an upload, and a length for each tensor",
    target="fedarena.defenses.sign_sgd.protocol:SignSGD",
    paper="signSGD: Compressed Optimisation for Non-Convex Problems (ICML)",
    authors="Bernstein, Wang, Azizzadenesheli, Anandkumar",
    year=2018,
    url="https://arxiv.org/abs/1802.04434",
    equations="Algorithm 1, with the scaled sign of Karimireddy et al. (ICML 2019, arXiv 1901.09847), Section 4",
    departures=(
        "A tensor of d entries is sent with the length ‖g‖₁/d, as Karimireddy et al. do. So learning rates keep their "
        "meaning, and rules and secure sums serve as for plain uploads. The server takes a mean and no vote.",
        "Karimireddy et al. add what a client loses to its next upload. That would mix rounds, and is left out.",
        "An entry that is 0 has the sign 1: a message has one bit an entry. With single samples many entries are 0, "
        "all of these push one way, and digits are not learned.",
    ),
    check="no number of a paper; an upload against a loop, and that descent is kept: tests/defenses/sign_sgd",
    facts=(
        ("down", "W"),
        ("up", "of ∂L/∂W, or of W − W_local, a sign for each entry and the mean magnitude of each tensor"),
        ("server knows", "W, every upload"),
        ("malicious server chooses", "the model that each client gets"),
        ("client knows", "W in its rounds, its own data; from two consecutive W the others' mean upload"),
        ("eavesdropper knows", "both wires, which is all that the server knows"),
        (
            "forms",
            "in paper form the signs are matched by plain gradients; in adaptive form the signs of a candidate's "
            "gradient are matched, and derivatives pass through the sign as if it were not there",
        ),
    ),
)
