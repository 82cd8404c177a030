"""Card and options of `d-sgd`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.graph import GraphOptions
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(GraphOptions):
    """Options of D-SGD."""

    clip: float | None = option(
        None, "τ: a neighbour's difference is cut to this length before it is mixed (SCClip); none: it is not", above=0
    )


CARD = Card(
    name="d-sgd",
    kind="defense",
    title="D-SGD: no server, nodes mix models with their neighbours",
    target="fedarena.defenses.d_sgd.protocol:DSGD",
    options=Options,
    version=6,
    paper="Can Decentralized Algorithms Outperform Centralized Algorithms? A Case Study for Decentralized Parallel "
    "Stochastic Gradient Descent (NIPS)",
    authors="Lian, Zhang, Zhang, Hsieh, Zhang, Liu",
    year=2017,
    url="https://arxiv.org/abs/1705.09056",
    equations="Algorithm 1 in the order of He, Karimireddy and Jaggi (2022): step, send, mix. `clip` is "
    "their self-centered clipping",
    departures=(
        "Lian et al. mix models first, and then add the step; here, as in He et al., a node steps first, and mixes "
        "models that hold this round's steps.",
        "τ is a number, as in the tables of He et al. Their code's adaptive τ, the second longest of a node's "
        "differences, is `d-sgd+arc+mean` with --assumed-corrupted 1; with more, ARC cuts more of them.",
        "Nodes weigh the same, whatever number of samples they hold: weights are those of Metropolis, w_ij = "
        "1/(1 + max(deg i, deg j)).",
        "With an aggregation rule, a node applies it to the differences u_ij = h_i − h_j of its neighbourhood, itself "
        "included with u_ii = 0. It assumes as many of them to be corrupted as of all nodes, at most a minority.",
        "Of a momentum the adaptive form takes the gradients of earlier rounds out, if the party heard the two rounds "
        "before. Otherwise, and in paper form, it takes a momentum as if it held none.",
        "The accuracy is the mean over the honest nodes' own models; beside it are the worst node's and that of the "
        "mean model, which nobody holds (`node_worst`, `mean_model`, `consensus`).",
    ),
    facts=(
        ("down", "nothing: the initial model is public"),
        ("up", "h = W − η·up to each neighbour, up being FedAvg's upload at the node's own W"),
        ("server knows", "there is none"),
        ("malicious server chooses", "there is none"),
        (
            "client knows",
            "what its neighbours send in every round, and its own model and data: in the first round a neighbour's "
            "upload, later the upload up to what others mixed into the neighbour's model",
        ),
        ("eavesdropper knows", "both directions of one edge, and the initial model"),
        ("in the end", "every node has its own model: nobody is given another one, and none is published"),
    ),
)
