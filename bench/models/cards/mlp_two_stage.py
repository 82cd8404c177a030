"""Card and options of `mlp-two-stage`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option
from fedarena.models.cards.distributions import init_option

ACTIVATIONS = ("elu", "relu")

DEPARTURES = (
    "ELU, as the paper has it. Its code writes ELU(False), which sets α = 0: that is a ReLU, activation=relu.",
    "Biases start from zero. The code leaves them as PyTorch draws them, U(±1/√fan_in).",
    "Initial weights are drawn again for every seed. The code draws the same ones for all seeds: weights_seed=1234.",
)


@dataclass(frozen=True)
class Options:
    """Options of the two-stage paper's models."""

    init: str = init_option("xavier-he")
    mean: float = option(0.0, "subtracted from every pixel; the paper's: MNIST 0.1307, Fashion 0.286, USPS 0.2469")
    std: float = option(1.0, "divides every pixel; the paper's: MNIST 0.3081, Fashion 0.353, USPS 0.2853", above=0)
    size: int | None = option(None, "resize images to this many pixels a side; the paper's USPS: 28", low=1)
    blur: float = option(
        0.0,
        "standard deviation in pixels of a Gaussian blur before resizing, zeros outside the image; 0: none; 0.75 makes "
        "of usps.npz the copy of USPS that the paper's code reads",
        low=0,
        high=10,
    )
    weights_seed: int | None = option(
        None, "what the initial weights are drawn from; none: the run's seed; the paper's code: 1234", low=0
    )
    activation: str = option("elu", "activation; elu as the paper says, relu as its code computes", choices=ACTIVATIONS)


CARD = Card(
    name="mlp-two-stage",
    kind="model",
    title="MLP of the two-stage DP paper, 32 hidden units",
    target="fedarena.models.mlp_two_stage:TwoStageMLP",
    options=Options,
    paper="Practical Differentially Private and Byzantine-resilient Federated Learning (SIGMOD)",
    authors="Xiang, Wang, Lin, Wang",
    year=2023,
    url="https://arxiv.org/abs/2304.09762",
    equations="Table 8",
    departures=DEPARTURES,
    check="25,450 parameters on 28x28 inputs and 10 classes: tests/models/test_models.py",
)
