"""Card and options of `fetchsgd`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of FetchSGD."""

    rows: int = option(5, "r, hash functions; an entry is read as the median over them", low=1, high=99)
    ratio: float = option(0.5, "numbers sent, over the model's parameters: r·c/d", above=0, high=1)
    kept: float = option(0.1, "k/c, entries that the server changes in a round, over the columns", above=0, high=1)
    momentum: float = option(
        0.0, "ρ, kept in the sketch (the authors' runs: 0.9, by which steps are ten times as long)", low=0, below=1
    )


CARD = Card(
    name="fetchsgd",
    kind="defense",
    title="FetchSGD: sketches of gradients",
    target="fedarena.defenses.fetchsgd.protocol:FetchSGD",
    options=Options,
    paper="FetchSGD: Communication-Efficient Federated Learning with Sketching (ICML)",
    authors="Rothchild, Panda, Ullah, Ivkin, Stoica, Braverman, Gonzalez, Arora",
    year=2020,
    url="https://arxiv.org/abs/2007.07682",
    equations="Algorithm 1",
    departures=(
        "The server sends W; the paper's server sends the k entries that changed, and a client that sat out gets those "
        "of the rounds that it missed.",
        "The released code also sets the momentum's sketch to 0 in the buckets of the entries that changed (momentum "
        "factor masking), and multiplies Δ by the learning rate, not what enters the error. Neither is done here.",
        "The hash functions are drawn from a seed of 4 bytes, fully random, and travel with every broadcast; the "
        "released code takes polynomials with fixed coefficients.",
        "The default has no momentum, so that a learning rate means what it means for FedAvg.",
        "Uploads are weighted by the clients' numbers of samples; the paper's mean is over clients.",
        "With local epochs it is the client's update that is sketched; the paper has one gradient a round.",
    ),
    check="no number of a paper; sketch and round against loops: tests/defenses/fetchsgd",
    facts=(
        ("down", "W, the seed of the hash functions"),
        ("up", "the Count Sketch of the gradient, r rows of c numbers"),
        ("server knows", "W, every sketch, and by the seed each entry of a gradient as a median of r noisy readings"),
        ("malicious server chooses", "the model and the seed of the sketch"),
        ("client knows", "W in its rounds, its own data; a step of the server mixes this round with former ones"),
        ("eavesdropper knows", "both wires, which is all that the server knows"),
    ),
)
