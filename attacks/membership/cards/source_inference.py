"""Card and options of `source-inference`."""

from dataclasses import dataclass

from fedarena.attacks.membership.cards.usual import FEW_SAMPLES
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of source inference."""

    rounds: int = option(30, "rounds of the training that are read, drawn by the harness", low=1)
    statistic: str = option(
        "loss",
        "loss: the client whose upload leads to the model with the least loss on the sample; cosine: the one whose "
        "upload points most towards the sample's own contribution",
        choices=("loss", "cosine"),
    )


CARD = Card(
    name="source-inference",
    aliases=("sia",),
    kind="attack",
    goal="source",
    title="Which client holds a sample that was trained on, by the loss of each client's model",
    target="fedarena.attacks.membership.source_inference:SourceInference",
    options=Options,
    paper="Source Inference Attacks in Federated Learning (ICDM)",
    authors="Hu, Salcic, Sun, Dobbie, Zhang",
    year=2021,
    url="https://arxiv.org/abs/2109.05659",
    equations="the client of the least prediction loss on the sample; FedSGD as in Hu, Zhang, Salcic, Sun, Choo, "
    "Dobbie 2023 (arXiv:2310.00222): the model after one step along the client's gradient",
    departures=(
        "The paper names a client in each round; here losses are averaged over rounds that the harness draws.",
        "A loss counts less the mean loss of the clients that were seen in the same round, so that late rounds "
        "favour nobody. Where all are seen in all rounds this changes no name.",
        "statistic=cosine is not in the paper. It is the cosine of FedMIA, and needs no model.",
    ),
    facts=(
        (
            "goal",
            "source: as many samples of each client that is seen alone; any one name is right for one in so many",
        ),
        ("reads", "every client's uploads, in rounds of the whole training; of sums of several clients nothing"),
        ("by loss", "needs the model that a client's upload leads to; a protocol that hides it gives no result"),
        ("by classes", "where clients hold different classes, the class alone tells; what that gives stands beside"),
    ),
    usual=(*FEW_SAMPLES, ("model.widths", "64")),
)
