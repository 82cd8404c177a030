"""Card and options of `baffle`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of BAFFLE."""

    directions: int = option(100, "K, loss differences a step", low=1, high=32767)
    min_directions: int | None = option(
        None,
        "each client evaluates and sends a number of its own between this and K, drawn again each round; none: all K",
        low=1,
    )
    sigma: float = option(1e-4, "σ, standard deviation of the perturbations", above=0)
    scheme: str = option(
        "forward",
        "forward: L(W + δ) − L(W), K + 1 forwards; central: L(W + δ) − L(W − δ), 2K forwards",
        choices=("forward", "central"),
    )
    perturbations: str = option(
        "shared",
        "shared: all clients expand the server's seed; client: each expands a seed of its own (released code)",
        choices=("shared", "client"),
    )
    downlink: str = option(
        "model",
        "model: W goes down; scalars: after the first round the K aggregated differences do, and clients rebuild W",
        choices=("model", "scalars"),
    )
    precision: str = option(
        "float32",
        "number format of weights, activations and loss; the share of differences that are exactly 0 is a mark "
        "of the run",
        choices=("float16", "float32", "float64"),
    )
    clip: float | None = option(
        None, "each estimate is shortened to this largest absolute entry (released code: 0.3)", above=0
    )
    ema: float | None = option(
        0.995, "decay of the moving average that is deployed in place of W; none: W itself", low=0, below=1
    )
    ema_warmup: bool = option(True, "decay min(ema, (1 + t)/(10 + t)) at the t-th average, as the released code's")
    ema_per: str = option(
        "round", "one average a round, or as many as a client takes steps in it", choices=("round", "step")
    )
    optimizer_state: str = option(
        "fresh",
        "whether a client's optimiser forgets its memory between rounds, or keeps it (released code); FedAvg only",
        choices=("fresh", "kept"),
    )
    law: bool = option(
        False, "draw the estimate from its exact distribution, given the true gradient: no forward passes"
    )


CARD = Card(
    name="baffle",
    kind="defense",
    title="BAFFLE: training by loss differences, without backpropagation",
    target="fedarena.defenses.baffle.protocol:Baffle",
    options=Options,
    paper="Does Federated Learning Really Need Backpropagation?",
    authors="Feng, Pang, Du, Chen, Yan, Lin",
    year=2023,
    url="https://arxiv.org/abs/2301.12195",
    equations="Algorithm 1; Eq. 1 to 6; the masks of secure aggregation are a part of their own: baffle+zero-sum",
    departures=(
        "The released code shares no perturbations and masks nothing; here both ends expand the server's seed, as the "
        "paper says. The code's form is perturbations=client, for which a client sends its seed along.",
        "The paper deploys an average of W with decay 0.995, its code a far shorter one, because the library that it "
        "uses warms the decay up. This is ema_warmup, on by default; off gives the paper's words.",
        "The released code shortens every estimate to a largest entry of 0.3, which the paper does not say: clip=0.3.",
        "The mask of Algorithm 1 has no index for round and difference; one mask for all K would cancel when they are "
        "subtracted, so it is drawn for each.",
    ),
    check="Table 1, LeNet on MNIST: 87.27, 89.48, 92.18 % at K = 100, 200, 500: bench reproduce baffle/table1",
    facts=(
        ("down", "W, or after the first round K aggregated differences; a 4-byte seed"),
        ("up", "K loss differences of 4 bytes (FedSGD), or W − W_local (FedAvg)"),
        ("server knows", "W, every perturbation δ_k, every upload unless they are summed securely"),
        (
            "malicious server chooses",
            "the model and the 4 bytes of the seed. Directions are expanded from it, so that it can search for them "
            "but not set them. It has no use for that: an upload is K directional derivatives at any model, and at one "
            "that measures K features of a sample they are these features (chosen-features). With downlink=scalars it "
            "sends W as after a failed round.",
        ),
        (
            "client knows",
            "W, every δ_k, its own data; if no rule replaces the mean, the others' mean differences from "
            "two consecutive W",
        ),
        ("eavesdropper knows", "both wires; the seed is one of the tensors on the wire, so it knows every δ_k"),
        (
            "what the adaptive form does not replay",
            "The order of a client's samples in several local epochs, which leaves its simulation far from the update. "
            "The rounding of activations and losses, which in float16 is most of a difference unless σ is large.",
        ),
    ),
    version=3,
)
