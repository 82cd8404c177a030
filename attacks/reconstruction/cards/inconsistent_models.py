"""Card and options of `inconsistent-models`."""

from dataclasses import dataclass

from fedarena.attacks.reconstruction.cards.analytic import CraftedModelOptions
from fedarena.core.card import Card


@dataclass(frozen=True)
class Options(CraftedModelOptions):
    """Options of inconsistent models."""


CARD = Card(
    name="inconsistent-models",
    kind="attack",
    goal="active-reconstruction",
    title="A malicious server switches all clients off but one, so that a secure sum is this one's upload",
    target="fedarena.attacks.reconstruction.inconsistent_models:InconsistentModels",
    options=Options,
    version=2,
    paper="Eluding Secure Aggregation in Federated Learning via Model Inconsistency (CCS)",
    authors="Pasquini, Francati, Ateniese",
    year=2022,
    url="https://arxiv.org/abs/2111.07380",
    equations="Section 4.1, dead ReLUs (gradient suppression)",
    departures=(
        "The victim gets the model of imprint, so that its batch can be read without a search; the paper leaves open "
        "how the isolated update is inverted.",
        "The output layer's bias is left out of what is read, since the other clients add to it. So are all layers of "
        "and behind a variational bottleneck.",
        "Imprint reads differences of rows, which pruning, rounding and noise spoil. The victim's upload is isolated "
        "there, too, and a search might read more of it. None is tried.",
    ),
    check="the victim's upload is isolated and its batch comes back from a secure sum, "
    "tests/attacks/reconstruction/test_inconsistent_models.py",
    facts=(
        ("reads", "what clients answer to models that it has set, a different one for the victim"),
        ("model", "two dense layers with biases at the beginning and ReLUs, such as mlp; else n/a"),
        ("knows", "half of the held-out data, for the thresholds of imprint and, but with prior=none, as its prior"),
    ),
    usual=(("model", "mlp"), ("lr", "0.05"), ("batch-size", "8")),
)
