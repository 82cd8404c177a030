"""Card and options of `fishing`."""

from dataclasses import dataclass

from fedarena.attacks.reconstruction.helpers.search_options import VictimOptions
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(VictimOptions):
    """Options of fishing."""

    variant: str = option(
        "automatic",
        "class: a class stands alone; feature: the sample next to a threshold; automatic: what works more often on "
        "the attacker's own samples",
        choices=("automatic", "class", "feature"),
    )
    iterations: int = option(600, "steps of signed Adam per victim", low=1)
    lr: float = option(0.1, "learning rate at the start", above=0)
    tv: float = option(1e-3, "weight of the total variation of the candidate image", low=0)
    restarts: int = option(1, "starts per victim; the best match is kept", low=1)
    polish: int = option(0, "evaluations of L-BFGS after Adam, with a thousandth of tv, at most", low=0)


CARD = Card(
    name="fishing",
    kind="attack",
    goal="active-reconstruction",
    title="A malicious server's output layer lets the gradient of one sample of a batch stand out (Fishing)",
    target="fedarena.attacks.reconstruction.fishing:Fishing",
    options=Options,
    version=1,
    paper="Fishing for User Data in Large-Batch Federated Learning via Gradient Magnification (ICML)",
    authors="Wen, Geiping, Fowl, Goldblum, Goldstein",
    year=2022,
    url="https://arxiv.org/abs/2202.00580",
    equations="Section 3, class fishing and feature fishing",
    departures=(
        "The feature is a direction that separates the class from the others, fitted to the attacker's own samples; "
        "the paper takes a single feature, whose distribution it estimates from other clients or earlier rounds.",
        "One round is attacked, and the class, the threshold and the magnification are those that work most often on "
        "draws from the attacker's own samples. The paper also asks a client repeatedly with the same batch.",
        "The isolated gradient is inverted as by inverting-gradients, with a target that saturates nowhere; the paper "
        "takes the magnification back for the search.",
        "One sample of each attacked upload or sum is read. The guess for the others is grey.",
    ),
    check="one sample stands alone in most rounds of convolutional networks, and one of 16 comes back from lenet-dlg, "
    "tests/attacks/reconstruction/test_fishing.py",
    facts=(
        ("reads", "what clients answer to a model whose output layer it has set"),
        ("model", "any with an output of two classes or more and cross-entropy; n/a with several local steps"),
        ("knows", "half of the held-out data, for its choice of the class and the threshold"),
    ),
    usual=(("model", "lenet-dlg"), ("lr", "0.05"), ("batch-size", "8")),
)
