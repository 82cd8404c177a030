"""Card and options of `signguard-tailored`."""

from dataclasses import dataclass

from fedarena.attacks.poisoning.helpers.usual_problem import USUAL
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of the SignGuard-tailored attack."""

    order: str = option(
        "reversed",
        "reversed: the own values where they do most harm; random: values of random size with the own signs, anywhere",
        choices=("reversed", "random"),
    )


CARD = Card(
    name="signguard-tailored",
    kind="attack",
    goal="poisoning",
    form="paper",
    usual=USUAL,
    title="SignGuard-tailored: an honest norm and honest signs, in the wrong places",
    target="fedarena.attacks.poisoning.signguard_tailored:SignGuardTailored",
    options=Options,
    equations="order=random after implementations by others; order=reversed is this project's",
    departures=(
        "Not from a paper. Implementations by others take the signs of the mean and do not scale. Here each colluder "
        "takes the signs and the length of its own honest upload, which the norm filter of the rule lets pass.",
    ),
    check="norm and signs of an honest upload, and the smallest inner product of all orders: "
    "tests/attacks/poisoning/test_signguard_tailored.py",
    facts=(
        ("knows", "own: its honest uploads and their mean; omniscient: the mean of the honest uploads"),
        ("sends", "an upload of its own from every colluder"),
    ),
)
