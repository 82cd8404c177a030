"""Card and options of `dlg`."""

from dataclasses import dataclass

from fedarena.attacks.reconstruction.helpers.search_options import LeastSquaresOptions
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(LeastSquaresOptions):
    """Options of DLG."""

    victims: int = option(5, "uploads attacked, spread evenly over the window", low=1)
    labels: str = option(
        "optimized",
        "optimized with the image (DLG), inferred from the output bias (iDLG), or given to the attacker",
        choices=("optimized", "inferred", "given"),
    )


CARD = Card(
    name="dlg",
    kind="attack",
    goal="reconstruction",
    title="DLG: deep leakage from gradients",
    target="fedarena.attacks.reconstruction.dlg:DLG",
    options=Options,
    version=2,
    paper="Deep Leakage from Gradients (NeurIPS)",
    authors="Zhu, Liu, Han",
    year=2019,
    url="https://arxiv.org/abs/1906.08935",
    equations="Algorithm 1; labels=inferred: iDLG (Zhao, Mopuri, Bilen 2020, arXiv:2001.02610), by the output bias",
    departures=(
        "Any observation is matched, not only gradients: the distance is taken through what the observation simulates.",
        "The distance is divided by the squared norm of what was observed, which makes one tolerance fit all.",
        "L-BFGS with a line search from several starts at once, which race (the better half goes on after 100, 200 and "
        "400 iterations) and give up when they stall. The authors run one start at fixed step 1.",
        "A protocol may offer a rougher simulator to begin with; then the best start continues with the exact one.",
        "Starts are dark, uniform on [0, 0.1]; the authors' are N(0, 1): init=normal.",
        "The adaptive form searches for likely images under the distribution of samples of the attacker's own "
        "(prior=population); the paper's has no prior.",
        "The usual problem is a network that learns; the authors' is `--model lenet-dlg --set training.lr=0.3 --set "
        "training.lr_schedule=constant`.",
        "All images of a batch are optimised together; the authors update one at a time.",
    ),
    usual=(
        ("model", "mlp"),
        ("model.widths", "64"),
        ("model.activation", "elu"),
        ("lr", "0.08"),
        ("lr_schedule", "cosine"),
    ),
    check="Figure 3: batch 1 is recovered pixel by pixel: recovered = 1 on digits and MNIST, "
    "tests/attacks/reconstruction/test_dlg.py",
    facts=(
        ("reads", "any view that offers a simulator of what was observed"),
        ("model", "needs smooth activations; ReLU networks resist it, and so do networks far from their start"),
        (
            "knows",
            "in the adaptive form half of the held-out data, whose distribution is its prior; prior=none: nothing",
        ),
    ),
)
