"""Card and options of `pbpfl`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of PBPFL."""

    r: str = option(
        "log-uniform",
        "distribution of the hidden channels' masks: log-uniform over `decades`; as in the authors' code uniform "
        "(U(0, 1) + 1e-5, convolutions) or constant (1 + 1e-5, dense layers)",
        choices=("log-uniform", "uniform", "constant"),
    )
    decades: float = option(
        2.0, "width of r's distribution: log10 of max r / min r", low=0, high=30, acts_with=("r", "log-uniform")
    )
    r_a: str = option("uniform", "distribution of r_a: uniform U(0, 1), normal N(0, 1)", choices=("uniform", "normal"))
    gamma: str = option(
        "uniform",
        "distribution of gamma: uniform U(0, 1), normal N(0, 1), or cancelling: the value with which a curious server "
        "cancels a single mask on all three uploads (it then shortens r_a below 1/2)",
        choices=("uniform", "normal", "cancelling"),
    )
    gamma_scale: float = option(1.0, "factor on gamma", above=0, high=1e6, acts_with=("gamma", "uniform", "normal"))
    precision: str = option(
        "float32",
        "of the clients' passes, uploads and the broadcast's last layer; float64: twice the bytes up, and gradients "
        "are recovered to about the rounding of the model",
        choices=("float32", "float64"),
    )
    digits: float = option(
        5.0,
        "decimal digits of a recovered gradient, of 7.2 that there are, that may be lost to rounding before the run is "
        "marked; they are estimated to some tenths",
        above=0,
        high=6,
    )


CARD = Card(
    name="pbpfl",
    kind="defense",
    title="PBPFL: the server hides its model behind masks that cancel",
    target="fedarena.defenses.pbpfl.protocol:PBPFL",
    options=Options,
    paper="Practical and Bilateral Privacy-preserving Federated Learning",
    authors="Feng, Yang, Fang, Xia, Tang",
    year=2020,
    url="https://arxiv.org/abs/2002.09843",
    equations="Sections 3.1 to 3.3, Eqs. 5 to 19; Section 4 (3) for uploads with shares of zero",
    departures=(
        "Fresh masks each round, the same for all clients of the round; the authors' code draws them for each client, "
        "which secret-shared uploads do not allow.",
        "The paper gives r no distribution. Its code's r is the constant 1 + 1e-5 for dense layers, which hides "
        "nothing: the default here is log-uniform over two decades.",
        "Biases are masked as weights from a unit that outputs 1; paper and code have none.",
        "β of the last layer is 0 and is still sent, as the paper says, so that all three uploads have one form.",
    ),
    check="client 2.5 x FedAvg's backward pass (Table 3): bench reproduce pbpfl/table3",
    facts=(
        ("loss", "half the squared error only (Eq. 3), to one-hot labels (mse) or one number (regression)"),
        ("models", "ReLU, max and average pooling, flatten, concatenated or added skips; no normalisation"),
        ("down", "Ŵ = R ∘ W, the last layer + γ r_a on every column; r_a"),
        ("up", "∂L̂/∂Ŵ, σ and β: three tensors for each of the model's"),
        ("server knows", "W, r, γ, r_a, hence every client's exact gradient"),
        (
            "malicious server chooses",
            "the model, R, γ and r_a, others for each client; a client sees Ŵ and r_a alone, and cannot check them. "
            "With R it scales a client's gradient by any factor, which singles the client out of a secure sum "
            "(inconsistent-masks). One mask for all three uploads cancels at a γ of its choice (gamma=cancelling).",
        ),
        ("client knows", "Ŵ, r_a, its own data"),
        ("eavesdropper knows", "both wires: Ŵ, r_a and every upload, hence every gradient up to R"),
        (
            "up to R",
            "R is a positive scaling of hidden units, which no function depends on. Estimates by those who do not know "
            "it are of the canonical form (rows of length 1), of which R is no part, and are judged in it.",
        ),
        ("secret-shared uploads", "pbpfl+zero-sum, pbpfl+pairwise-masks; one mask for all three: zero-sum.repeat=3"),
        (
            "one mask for all three",
            "β of the last layer is 0, so that its upload shows the mask there; elsewhere ∂L̂/∂Ŵ − σ "
            "and σ − β are in clear",
        ),
        (
            "pairwise-masks",
            "uploads are large: give them room, --set pairwise-masks.bits=64 --set pairwise-masks.bound=1e6",
        ),
    ),
    usual=(("model", "mlp"), ("loss", "mse")),
    version=7,
)
