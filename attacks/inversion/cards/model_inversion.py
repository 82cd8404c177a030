"""Card and options of `model-inversion`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of model inversion."""

    cost: str = option(
        "loss",
        "loss: what the model was trained for, −log f of the class or half its squared error; confidence: 1 − f of the "
        "class, as in the paper",
        choices=("loss", "confidence"),
    )
    lr: float = option(0.1, "λ, the step along the gradient of the cost", above=0)
    iterations: int = option(5000, "α, steps for each class, at most", low=1)
    patience: int = option(100, "β, steps without a lower cost after which the search for a class stops", low=1)
    confidence: float = option(0.99, "γ, the model's confidence at which the search for a class stops", above=0, high=1)
    start: str = option(
        "grey",
        "where every class begins: grey (0.5), zeros as in the paper, or the mean of samples of the attacker's own",
        choices=("grey", "zeros", "mean"),
    )
    denoise: float = option(
        0.0, "share of a 3×3 smoothing that is mixed into the image after every step; 0: none", low=0, high=1
    )
    directions: int = option(
        200,
        "without the parameters: directions along which a gradient is measured, two queries each",
        low=1,
        party="outsider",
    )
    block: int = option(
        1,
        "without the parameters: side of the square blocks of pixels that are moved together, as one",
        low=1,
        party="outsider",
    )
    difference: float = option(
        1e-2, "without the parameters: how far a measurement goes along a direction", above=0, party="outsider"
    )


CARD = Card(
    name="model-inversion",
    aliases=("mi-face", "fredrikson"),
    kind="attack",
    goal="inversion",
    title="MI-Face: what each class looks like to the model",
    target="fedarena.attacks.inversion.model_inversion:ModelInversion",
    options=Options,
    paper="Model Inversion Attacks that Exploit Confidence Information and Basic Countermeasures (CCS)",
    authors="Fredrikson, Jha, Ristenpart",
    year=2015,
    url="https://doi.org/10.1145/2810103.2813677",
    equations="Section 5, algorithm MI-Face, with c(x) = 1 − f_class(x) (cost=confidence) and no auxiliary term",
    departures=(
        "The cost is the model's own loss. 1 − f is flat where the model is sure of another class, and ignores "
        "the other outputs of a model trained for squared errors. The paper's: cost=confidence.",
        "A start at mid-grey. From black, the paper's start, the search for a face ends at pictures that are too dark "
        "to recognise. The paper's: start=zeros.",
        "The search ends when f reaches γ. As printed, c ≤ γ with γ = 0.99 ends it at the first step.",
        "All classes at once. Process is a smoothing with the share denoise; the paper's denoises and sharpens in the "
        "code of an autoencoder.",
    ),
    check="evaluator top-1 of 39 faces from a softmax model: bench reproduce inversion/faces",
    facts=(
        ("goal", "inversion: a picture of each class, by any party that has the final model, or can query it"),
        ("reads", "the released model: the server the one it deploys, an outsider only answers to queries"),
        ("form", "paper alone: a released model is attacked in the same way after any protocol"),
        (
            "without parameters",
            "2·directions queries a step and class; exact where directions reach the number of blocks",
        ),
    ),
    form="paper",
    usual=(("model", "mlp"), ("rounds", "500"), ("batch_size", "32"), ("lr", "0.05")),
)
