"""Card and options of `a3fl`."""

from dataclasses import dataclass

from fedarena.attacks.poisoning.helpers.usual_problem import USUAL
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of the optimised trigger."""

    target: int = option(2, "class that the trigger is to give", low=0)
    size: int | None = option(None, "side of the square patch; none: a sixth of the image's, at least 2", low=1)
    share: float = option(0.25, "probability with which a sample of a batch carries the patch", above=0, high=1)
    steps: int = option(200, "steps of the patch", low=1)
    step: float = option(0.01, "what a step moves a pixel by", above=0)
    lam: float = option(0.01, "λ, weight of the model that has unlearned the patch", low=0)
    renew: int = option(10, "steps after which a model unlearns the patch anew", low=1, idle_with=("lam", 0.0))
    unlearning: int = option(5, "epochs in which that model unlearns it", low=0, idle_with=("lam", 0.0))
    alone: int = option(100, "epochs in which the colluders train a model of their own first", low=0)
    alone_lr: float = option(0.2, "learning rate of that training and of the unlearning", above=0)
    seed: int = option(0, "seed of the order of samples in both trainings", low=0)


CARD = Card(
    name="a3fl",
    kind="attack",
    goal="poisoning",
    form="paper",
    usual=USUAL,
    title="A3FL: an optimised trigger that outlives a model which learns to ignore it",
    target="fedarena.attacks.poisoning.a3fl:A3FL",
    options=Options,
    paper="A3FL: Adversarially Adaptive Backdoor Attacks to Federated Learning (NeurIPS)",
    authors="Zhang, Jia, Chen, Lin, Wu",
    year=2023,
    url="https://openreview.net/forum?id=S6ajVZy6FA",
    equations="Section 4, Algorithm 1; patch of 5×5 of 32×32 pixels, 200 steps of 0.01, 5 epochs of unlearning, λ = "
    "0.01 and a quarter of poisoned samples as in the authors' config.yaml",
    departures=(
        "The paper optimises the trigger in each attacked round for the round's model. Here it is made once, before "
        "the first round, for a model that the colluders train on their own. Success is counted on inputs that exist "
        "before the run, so that the attacked and the honest model are shown the same.",
        "The model that unlearns is made anew every 10 steps; the authors' code does it in every step.",
        "A step of the patch uses all of the colluders' samples (at most 512), the authors' one batch of 64.",
        "The authors' cosine is that of gradients of convolutional layers; here it is of all parameters.",
        "Pixels stay in [0, 1]; the authors clip normalised pixels to [−2, 2].",
    ),
    check="no number of the paper; the loss by hand and the descent: tests/attacks/poisoning/test_backdoors.py; "
    "benchmarks/backdoors.py measures its success",
    facts=(
        ("knows", "own: its own samples and the initial model"),
        ("sends", "the protocol's own upload on the poisoned batch"),
        ("needs", "images"),
    ),
)
