"""Card and options of `dbcl-peers`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.graph import GraphOptions
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(GraphOptions):
    """Options of DBCL between peers."""

    ratio: float = option(0.5, "sketch size s as a share of d_in", above=0, high=1)
    hash: str = option(
        "balanced",
        "distribution of S: balanced as in the authors' code, countsketch as in the paper, uniform, gaussian",
        choices=("countsketch", "balanced", "uniform", "gaussian"),
    )
    mixing: str = option(
        "contraction",
        "factor of what a node mixes: contraction, s/d; unbiased, 1, in the mean over S D-SGD's, which may diverge",
        choices=("contraction", "unbiased"),
    )


CARD = Card(
    name="dbcl-peers",
    kind="defense",
    title="DBCL between peers: neighbours exchange sketches of their models",
    target="fedarena.defenses.dbcl.peers:DBCLPeers",
    options=Options,
    version=7,
    paper="Matrix Sketching for Secure Collaborative Machine Learning (ICML)",
    authors="Zhang, Wang",
    year=2021,
    url="https://arxiv.org/abs/1909.11201",
    equations="Appendix D, which has no equation: neighbours agree on random seeds, sketch their models, and "
    "communicate the sketches",
    departures=(
        "The paper leaves open what a node makes of a neighbour's sketch. Here it knows h_j S of the round's S alone, "
        "takes the same sketch of its own model, and mixes the difference: c·(h_i − h_j) S Sᵀ.",
        "Both ends of an edge have one S, so that what one adds the other takes away: the mean of all models moves by "
        "the local steps alone, as in D-SGD.",
        "c = s/d makes c·S Sᵀ a projection for hash=uniform, and for hash=balanced where s divides d; where it does "
        "not, the hash drops coordinates and mixes less. With the other two mixing may overshoot.",
        "With c = 1 the mean over S is D-SGD's mixing, but where the balanced hash drops coordinates. A single S "
        "overshoots, and with small s nodes drift apart without bound.",
        "For s > d/2 the balanced hash is a sample of s coordinates in a new order with random signs: these cross in "
        "clear.",
        "A node's local step is plain: its own model never leaves it, and no other node's model is in it.",
        "As before a server, biases and the output layer cross in clear.",
        "Of a momentum the adaptive form takes the gradients of earlier rounds out, if the party heard the two rounds "
        "before. Otherwise, and in paper form, it takes a momentum as if it held none. The difference of two "
        "estimated uploads may be the worse estimate, so the upload as it is, `momentum left`, is read as well.",
        "Corrupted nodes craft their part of a difference h_i − h_j, and so get h_i, of which only a sketch crosses. "
        "What they send is sketched like any message. Poisoning that reads models has more here than it would have.",
        "The seed of an edge crosses in clear (4 bytes), as DBCL's does: the paper's nodes only agree on it.",
    ),
    facts=(
        ("down", "nothing: the initial model is public"),
        ("up", "to each neighbour another sketch h·S of hidden layers; biases and output layer in clear"),
        ("server knows", "there is none"),
        ("malicious server chooses", "there is none"),
        (
            "client knows",
            "S and h·S of its neighbours in every round, its own model and data. In the first round that is s numbers "
            "of each row of a gradient, later what a Kalman smoother makes of all rounds.",
        ),
        ("eavesdropper knows", "both directions of one edge, its seeds, and the initial model"),
        ("in the end", "every node has its own model: nobody is given another one, and none is published"),
        (
            "where the smoother stops",
            "it takes the steps of all entries to be alike, and those of rounds to be independent. What other "
            "neighbours mixed into the victim's model it estimates: by what they sent to the readers, else by the mean "
            "of all models that these have or follow. What an aggregation rule mixes it takes to be the mean, but of a "
            "rule that takes few messages, such as Krum, it reads from what crosses in clear which ones. In the "
            "end of a training, when most steps are short, it loses them (`bench reproduce dbcl/smoother-limits`).",
        ),
    ),
)
