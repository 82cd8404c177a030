"""Card and options of `fedzo`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of FedZO."""

    directions: int = option(20, "b2, random directions of a local step (released code: 20)", low=1, high=32767)
    mu: float = option(1e-3, "μ, length of the perturbation along each direction (released code: 0.001)", above=0)
    precision: str = option(
        "float32", "number format of weights, activations and loss", choices=("float16", "float32", "float64")
    )


CARD = Card(
    name="fedzo",
    kind="defense",
    title="FedZO: local steps on zeroth-order gradient estimates",
    target="fedarena.defenses.fedzo.protocol:FedZO",
    options=Options,
    paper="Communication-Efficient Stochastic Zeroth-Order Optimization for Federated Learning (IEEE TSP)",
    authors="Fang, Yu, Jiang, Shi, Jones, Zhou",
    year=2022,
    url="https://arxiv.org/abs/2201.09531",
    equations="Algorithm 1 and its mini-batch estimator, without the transmission over the air",
    departures=(
        "The server weighs the changes by the clients' numbers of samples; the paper's clients hold equally many.",
        "A local step takes the next batch of a shuffled pass over the client's samples; the paper draws each batch "
        "anew. H local steps of b1 samples are local_samples = H·b1 with batch_size = b1.",
        "The paper's summation over the air, with its fading and noise, is left out.",
        "The full text of the paper was not at hand: the estimator and the algorithm follow its summary and the "
        "released code of its attack on a classifier, from which the defaults are. Of its experiments with softmax "
        "regression nothing is taken over.",
    ),
    check="BAFFLE's paper quotes 83.58 % on MNIST after 1,000 rounds, in a setting that it does not state: "
    "bench reproduce baffle/fedzo",
    facts=(
        ("down", "W"),
        ("up", "W − W_local after H local steps, 4 bytes a parameter; with local-epochs 0 one gradient estimate"),
        ("server knows", "W, every upload, but none of the directions behind it"),
        ("malicious server chooses", "the model alone: directions are the clients' own"),
        (
            "client knows",
            "W in its rounds, its own data and directions; if no rule replaces the mean, the others' mean upload from "
            "two consecutive W",
        ),
        ("eavesdropper knows", "both wires, which is all that the server knows"),
        (
            "what the adaptive form does not replay",
            "a client's own directions: an upload is read as the one that backpropagation gives, plus noise",
        ),
    ),
)
