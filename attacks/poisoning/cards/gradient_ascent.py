"""Card and options of `gradient-ascent`."""

from dataclasses import dataclass

from fedarena.attacks.poisoning.helpers.tuning_options import TuningOptions
from fedarena.attacks.poisoning.helpers.usual_problem import USUAL
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(TuningOptions):
    """Options of gradient ascent."""

    scale: float = option(4.0, "k of the loss −k·L", above=0)


CARD = Card(
    name="gradient-ascent",
    kind="attack",
    goal="poisoning",
    form="adaptive",
    usual=USUAL,
    title="Gradient ascent: the protocol's own steps, which raise the loss",
    target="fedarena.attacks.poisoning.gradient_ascent:GradientAscent",
    options=Options,
    equations="g = −k ∂L/∂W through the client step, whatever that adds to g",
    departures=(
        "Not from a paper. Attacks that craft an upload fail where the protocol adds a code to it, though anybody who "
        "can run the client step could add that code. This one runs the client step itself.",
        "With the losses mse and regression there is no label whose gradient is −k times the true one. There the "
        "colluders train towards −k times the label.",
    ),
    check="no number of a paper; tests/attacks/poisoning/test_gradient_ascent.py",
    facts=(
        ("knows", "own: nothing but its own samples"),
        ("sends", "the protocol's own upload for the loss −k·L, with its noise, momentum, masks and codes"),
    ),
)
