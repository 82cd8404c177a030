"""Card and options of `dp-rsa`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of DP-RSA."""

    epsilon: float | None = option(
        0.4, "ε of one sign of one round, not of a message or of the training; none: no sign is flipped", above=0
    )
    penalty: float = option(0.01, "λ, weight of the ℓ1 penalty that ties local models to W (released code)", above=0)
    decay: float = option(0.004, "u, the server's own term (u/2)‖W‖² (released code)", low=0)


PROMISES = (
    (
        "for one sign of one round, ε is {epsilon_per_sign} for whatever change of the data; over all entries and "
        "{rounds} rounds together it is {epsilon_all}, at δ = 0.",
        "nothing, for no sign is flipped.",
    ),
    ("A sign is kept with probability {kept} and flipped otherwise.", "Signs are sent as they are."),
)

CARD = Card(
    name="dp-rsa",
    kind="defense",
    title="DP-RSA: flipped signs of the distance to local models",
    target="fedarena.defenses.dp_rsa.protocol:DPRSA",
    options=Options,
    paper="Bridging Differential Privacy and Byzantine-Robustness via Model Aggregation (arXiv preprint)",
    authors="Zhu, Ling",
    year=2022,
    url="https://arxiv.org/abs/2205.00107",
    equations="the update of RSA (Li et al. 2019) with the sign-flipping mechanism, as in the released code",
    departures=(
        "The text of the paper was not at hand beyond its abstract: the algorithm and the default λ and u are those of "
        "the released code (oyhah/DP-RSA), where it flips signs.",
        "Of its two mechanisms that with Gaussian noise before the sign is left out: its promise needs gradients with "
        "bounded entries, which the released code assumes and does not enforce.",
        "A client takes its gradient step before it compares its model with W; the code takes both from the model "
        "before. The messages are the same but for gradients at a point that is ηλ away in each entry, and one of them "
        "tells of the round's own batch.",
        "A client's local model starts at the first W that it receives; in the code every model starts at random.",
        "ε is that of one sign, the reading under which the code's probability 0.6 is the ε = .40 that is printed "
        "for it. A message has d signs: `epsilon_all` counts all of them.",
    ),
    check="MNIST, 10 % Gaussian attackers, ε = .40: 0.43 as the two-stage paper quotes it: bench reproduce "
    "two-stage/sign-rules",
    facts=(
        ("down", "W"),
        ("up", "sign(W − W_local), each flipped with probability 1/(1 + e^ε); one bit an entry"),
        ("server knows", "W, every message"),
        (
            "malicious server chooses",
            "the model at which clients work; their noise is drawn by themselves, and holds for any model",
        ),
        (
            "client knows",
            "W in its rounds, its own data, local model and flips; the others' mean message from two consecutive W",
        ),
        ("eavesdropper knows", "both wires, which is all that the server knows"),
        (
            "what the adaptive form does not replay",
            "a client's local model, which no other party knows: it is taken to be W, as in a client's first round",
        ),
    ),
    guarantees=(
        ("epsilon_per_sign", "ε of one sign of one round"),
        ("kept", "probability that a sign is kept"),
        ("rounds", "rounds"),
        ("epsilon_all", "ε of all signs of all rounds, by simple composition,"),
    ),
    promises=PROMISES,
)
