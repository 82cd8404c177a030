"""Card and options of `model-inversion`."""

from dataclasses import dataclass

from fedarena.cards import Card, option


@dataclass(frozen=True)
class Options:
    """Options of model inversion."""

    cost: str = option(
        "log",
        "log: −log f, whose slope does not vanish where the model is sure of another class; confidence: 1 − f as in "
        "the paper; f: the model's confidence in the class. Of a model trained for squared errors always 1 − f",
        choices=("log", "confidence"),
    )
    lr: float = option(0.1, "λ, the step along the gradient of the cost", above=0)
    iterations: int = option(5000, "α, steps for each class, at most", low=1)
    patience: int = option(100, "β, steps without a lower cost after which a class is given up", low=1)
    confidence: float = option(0.99, "γ, the model's confidence at which a class is taken as found", above=0, high=1)
    start: str = option(
        "zeros",
        "where every class begins: zeros as in the paper, grey (0.5), or the mean of samples of the attacker's own",
        choices=("zeros", "grey", "mean"),
    )
    denoise: float = option(
        0.0, "share of a 3×3 smoothing that is mixed into the image after every step; 0: none", low=0, high=1
    )
    directions: int = option(
        200, "without the parameters: directions along which a gradient is measured, two queries each", low=1
    )
    difference: float = option(1e-2, "without the parameters: how far a measurement goes along a direction", above=0)


CARD = Card(
    name="model-inversion",
    kind="attack",
    title="MI-Face: what each class looks like to the model",
    target="fedarena.attacks.model_inversion:ModelInversion",
    options=Options,
    paper="Model Inversion Attacks that Exploit Confidence Information and Basic Countermeasures (CCS)",
    authors="Fredrikson, Jha, Ristenpart",
    year=2015,
    url="https://doi.org/10.1145/2810103.2813677",
    equations="Section 5, algorithm MI-Face, with c(x) = 1 − f_class(x) and no auxiliary term",
)
