"""Card and options of `dp-peers`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.graph import GraphOptions
from fedarena.defenses.dp_sgd.card import GUARANTEES, PROMISES
from fedarena.defenses.dp_sgd.card import Options as LocalNoise


@dataclass(frozen=True)
class Options(GraphOptions, LocalNoise):
    """Options of DP-SGD between peers."""


CARD = Card(
    name="dp-peers",
    kind="defense",
    title="DP-SGD between peers: every node noises its own step",
    target="fedarena.defenses.dp_sgd.peers:DPPeers",
    options=Options,
    version=5,
    paper="Muffliato: Peer-to-Peer Privacy Amplification for Decentralized Optimization and Averaging (NeurIPS)",
    authors="Cyffers, Even, Bellet, Massoulié",
    year=2022,
    url="https://arxiv.org/abs/2206.05091",
    equations="Muffliato-SGD with one gossip step a round: a noisy gradient step at each node, then mixing",
    departures=(
        "The paper's nodes mix several times a round. It counts what distance in the graph adds to privacy, which is "
        "not counted here: ε is that of local differential privacy, before whoever hears all messages.",
        "A node's upload is that of `dp-sgd`, with its options: clipping of samples, Poisson batches and its σ.",
        "With momentum the adaptive form takes an upload as if it held no earlier one.",
    ),
    facts=(
        ("down", "nothing: the initial model is public"),
        ("up", "h = W − η·g to each neighbour, g = (1/b)(Σ clipped gradients + N(0, σ²C²)) at the node's own W"),
        ("server knows", "there is none"),
        ("malicious server chooses", "there is none"),
        ("client knows", "what its neighbours send in every round, and its own model, data and noise"),
        ("eavesdropper knows", "both directions of one edge, and the initial model"),
        ("in the end", "every node has its own model: nobody is given another one, and none is published"),
        ("privacy unit", "one sample of one node, for all messages of the training together"),
    ),
    guarantees=GUARANTEES,
    promises=PROMISES,
)
