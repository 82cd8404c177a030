"""Card and options of `inverting-gradients`."""

from dataclasses import dataclass

from fedarena.attacks.reconstruction.helpers.search_options import VictimOptions
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(VictimOptions):
    """Options of Inverting Gradients."""

    iterations: int = option(2400, "steps of signed Adam per victim", low=1)
    lr: float = option(0.1, "learning rate at the start", above=0)
    tv: float = option(1e-3, "τ, weight of the total variation of the candidate images", low=0)
    restarts: int = option(1, "starts per victim; the best match is kept", low=1)
    labels: str = option(
        "inferred",
        "inferred from the output layer, and optimized with the images where it is not seen; or given to the attacker",
        choices=("inferred", "optimized", "given"),
    )
    init: str = option(
        "normal",
        "starting images: normal N(0, 1) as in the paper, uniform on [0, 1], dark uniform on [0, 0.1]",
        choices=("normal", "uniform", "dark"),
    )
    decay: str = option(
        "steps",
        "the learning rate: in steps, a tenth after 3/8, 5/8 and 7/8 of the iterations, or along a cosine to 1/1000",
        choices=("steps", "cosine"),
    )
    kinks: float = option(
        0.0,
        "half the width, in standard deviations of a layer's input, within which ReLUs and max pooling are rounded off "
        "at the start; it falls to a hundredth; 0: not at all",
        low=0,
    )
    colours: bool = option(
        False, "the total variation is of the differences of three colours, too", idle_with=("tv", 0.0)
    )
    polish: int = option(0, "evaluations of L-BFGS after Adam, with a thousandth of τ, at most", low=0)
    statistics: float = option(
        0.1,
        "α, weight of the distance R_BN from statistics of batch normalisation, where clients sent them",
        low=0,
        form="adaptive",
        listed=False,
    )
    max_batch: int = option(8, "most samples behind one upload that are tried", low=1)


CARD = Card(
    name="inverting-gradients",
    version=2,
    aliases=("geiping", "ig", "invert-gradients"),
    kind="attack",
    goal="reconstruction",
    title="Inverting Gradients: cosine distance and total variation, by signed Adam",
    target="fedarena.attacks.reconstruction.inverting_gradients:InvertingGradients",
    options=Options,
    paper="Inverting Gradients: How Easy Is It to Break Privacy in Federated Learning? (NeurIPS)",
    authors="Geiping, Bauermeister, Dröge, Moeller",
    year=2020,
    url="https://arxiv.org/abs/2003.14053",
    equations="Eq. 4, Section 5; Section 6 for local steps and batches",
    departures=(
        "Any observation is matched, through what it simulates, not only gradients and updates.",
        "2,400 iterations, for a CPU; the authors' library takes 4,800 by default, their script 24,000.",
        "Pixels lie in [0, 1]; the authors' are divided by the data set's standard deviation, so that the same "
        "learning rate is a longer step here. Their τ is 1e-1 (library) or 1e-2; here 1e-3, which did better.",
        "Options beyond the paper, unused by default: the decay of the learning rate, ReLUs and max pooling that are "
        "rounded off less and less, a total variation of colours, and L-BFGS at the end. The authors' later library "
        "has that total variation, too.",
        "Where clients send statistics of batch normalisation, R_BN of GradInversion is added (Yin et al. 2021, arXiv "
        "2104.07586), with the weight 0.1 of breaching's configuration. Other terms of GradInversion are left out, and "
        "breaching counts the first layer tenfold.",
        "Labels are inferred from the output layer's bias, batches too; the authors take them as known.",
    ),
    check="Section 5: single images come back from a convolutional network: bench reproduce inversion/images",
    facts=(
        ("reads", "any view that offers a simulator of what was observed"),
        ("images", "the total variation is of images; for rows of a table there is none"),
    ),
)
