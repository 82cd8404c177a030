"""Card and options of `inconsistent-masks`."""

from dataclasses import dataclass

from fedarena.attacks.reconstruction.cards.analytic import Options as AnalyticOptions
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(AnalyticOptions):
    """Options of inconsistent masks."""

    loudness: float = option(1e3, "F, by which the victim's gradient grows and the others' shrink", above=1, high=1e6)


CARD = Card(
    name="inconsistent-masks",
    version=3,
    kind="attack",
    goal="active-reconstruction",
    title="A malicious server scales one client up and the others down, so that a secure sum is this one's upload",
    target="fedarena.attacks.reconstruction.inconsistent_masks:InconsistentMasks",
    options=Options,
    equations="of the module: ∂L/∂(r W) = (1/r) ∂L/∂W, with another r for each client",
    departures=(
        "Not from a paper. The servers of inconsistent-models send dead models. This one sends every client the honest "
        "model, and hides the choice in factors that the protocol keeps from clients.",
    ),
    check="the victim's gradient comes out of a secure sum, tests/attacks/reconstruction/test_inconsistent_masks.py",
    facts=(
        ("reads", "a secure sum of what clients answer to the same model under different masks"),
        ("model", "a dense first layer with a bias, such as mlp; a protocol that masks the model, else n/a"),
        ("knows", "nothing besides"),
    ),
    usual=(("model", "mlp"), ("lr", "0.05"), ("batch-size", "1")),
)
