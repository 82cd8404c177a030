"""Card and options of `dbcl`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of DBCL."""

    ratio: float = option(0.5, "sketch size s as a share of d_in", above=0, high=1)
    vary: float = option(0.0, "draw s each round between ratio·d_in and (ratio + vary)·d_in", low=0, below=1)
    hash: str = option(
        "balanced",
        "distribution of S: balanced as in the authors' code, countsketch as in the paper, uniform (dropout), gaussian",
        choices=("countsketch", "balanced", "uniform", "gaussian"),
    )


CARD = Card(
    name="dbcl",
    kind="defense",
    title="DBCL: matrix sketching of the weights",
    target="fedarena.defenses.dbcl.protocol:DBCL",
    options=Options,
    paper="Matrix Sketching for Secure Collaborative Machine Learning (ICML)",
    authors="Zhang, Wang",
    year=2021,
    url="https://arxiv.org/abs/1909.11201",
    equations="Section 4.2, Eq. 2; Appendix B.1 (dense) and B.2 (convolutional); estimators of Section 6.3",
    departures=(
        "The authors' code gives clients the full W and sketches inside the layer; here W·S crosses the wire.",
        "The authors' code uses a balanced hash (every bucket holds ⌊d/s⌋ coordinates), the paper a CountSketch. "
        "The code's is the default, because networks train with it nearly as without sketches. The paper's, with which "
        "they do not, is hash=countsketch.",
        "The authors' local optimiser is Adam with an oscillating learning rate; here any of sgd, momentum, adam, "
        "constant rate. With hash=gaussian there is no local Adam, which steps entry by entry of W, out of the row "
        "space of Sᵀ.",
        "Corollary 3, Ω(d/s)·‖W Vᵀ‖² for independent entries, holds for entries of mean zero alone. Its last step "
        "takes ‖W Vᵀ‖² to be of order d; it is of order d² otherwise (tests/defenses/dbcl/test_sketch.py).",
    ),
    check="Table 1, MLP: 97 % on MNIST in 96 rounds plain and 322 sketched (c = 10 %): bench reproduce dbcl/table1",
    facts=(
        ("down", "4-byte seed, W·S of hidden layers, biases and output layer in clear"),
        ("up", "Γ = ∂L/∂(W·S) of hidden layers, gradients of biases and output layer in clear"),
        ("server knows", "W, S, every Γ"),
        (
            "malicious server chooses",
            "the seed and a sketch of any model; a client cannot tell whose sketch it is. Whatever the model, a sample "
            "leaves s numbers a round. The 4 bytes of the seed can be searched (affine-model's draws), but set no S.",
        ),
        (
            "size of the sketch",
            "The paper lets the server set s below d_in and vary it, and a client reads it off W·S. So a malicious "
            "server may set it near d_in, where nearly nothing is hidden: try ratio=0.98. Here s is the largest that "
            "the options allow.",
        ),
        ("client knows", "S and W·S in its rounds, its own data"),
        ("hides W", "one sketch does, several in turn do not: run model-extraction in its adaptive form"),
        (
            "hash=uniform",
            "dropout of the inputs of layers, one mask a round for all clients and samples; W·S then holds s/d of W's "
            "entries in clear",
        ),
        ("hash=gaussian", "a client holds S, d_in·s numbers a layer, beside W·S; its peak memory counts them"),
        ("eavesdropper knows", "both wires; the seed is one of the tensors on the wire, so it knows S"),
        (
            "eavesdropper in the paper form",
            "lacks W and takes W·S·Sᵀ as the model, which is the network that clients ran: it may come nearer than "
            "the server, whose attack in the paper uses W; the paper has no eavesdropper",
        ),
    ),
)
