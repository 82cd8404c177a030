"""Card and options of `multi-step`."""

from dataclasses import dataclass

from fedarena.attacks.reconstruction.cards.inverting_gradients import Options as InvertingOptions
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(InvertingOptions):
    """Options of the attack on several local epochs."""

    invariance: float = option(0.1, "λ, weight of the squared distance between the epochs' mean features", low=0)
    features: int = option(
        32, "channels of the random convolution that gives the features", low=1, idle_with=("invariance", 0.0)
    )


CARD = Card(
    name="multi-step",
    kind="attack",
    goal="reconstruction",
    title="Data leakage in FedAvg: candidates for every local epoch, matched to each other",
    target="fedarena.attacks.reconstruction.multi_step:MultiStep",
    options=Options,
    version=2,
    paper="Data Leakage in Federated Averaging (TMLR)",
    authors="Dimitrov, Balunović, Konstantinov, Vechev",
    year=2022,
    url="https://arxiv.org/abs/2206.12395",
    equations="the simulation of all epochs, the epoch order-invariant prior, and the matching of epochs",
    departures=(
        "Labels are counted by playing the update of one order, where the paper follows a last-layer attack along the "
        "local steps.",
        "The prior compares mean features of one random convolution with a ReLU; the paper tries several.",
        "The search is that of `inverting-gradients`: cosine distance, and Adam on signs.",
        "Each epoch has the labels in the same order, which the client's own orders are not.",
        "Updates of several clients together, and those that cannot be played visit by visit, are attacked as by "
        "`inverting-gradients`, whose one order it is.",
    ),
    check="FEMNIST, 10 epochs of 10 batches of 5: above 45 % recovered, below 10 % by earlier attacks; digits are "
    "matched closer than by the sum of gradients here: tests/attacks/reconstruction/test_multi_step.py",
    facts=(
        ("reads", "an update of several local epochs, and the client's step, which it plays sample by sample"),
        ("labels", "inferred, or searched for; labels=given: known"),
    ),
    usual=(
        ("model", "mlp"),
        ("local_epochs", "5"),
        ("local_samples", "4"),
        ("batch_size", "2"),
        ("lr", "0.3"),
    ),
)
