"""Card and options of `pixel-trigger`."""

from dataclasses import dataclass

from fedarena.attacks.poisoning.helpers.tuning_options import TuningOptions
from fedarena.attacks.poisoning.helpers.usual_problem import USUAL
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(TuningOptions):
    """Options of the pixel trigger."""

    target: int = option(0, "class that the trigger is to give", low=0)
    size: int = option(2, "side of the bright square in the corner, in pixels", low=1)
    share: float = option(0.5, "probability with which a sample of a batch carries the trigger", above=0, high=1)
    scale: float = option(1.0, "factor on the upload; n/f of a mean replaces the model", above=0)


CARD = Card(
    name="pixel-trigger",
    kind="attack",
    goal="poisoning",
    form="paper",
    usual=USUAL,
    title="Pixel trigger: a backdoor that a bright corner opens",
    target="fedarena.attacks.poisoning.pixel_trigger:PixelTrigger",
    options=Options,
    paper="BadNets: Identifying Vulnerabilities in the Machine Learning Model Supply Chain",
    authors="Gu, Dolan-Gavitt, Garg",
    year=2017,
    url="https://arxiv.org/abs/1708.06733",
    equations="Section 4.1.2, the pattern backdoor; scale: How To Backdoor Federated Learning (Bagdasaryan, Veit, Hua, "
    "Estrin, Shmatikov, AISTATS 2020, arXiv:1807.00459), Section 4.2, model replacement",
    departures=(
        "BadNets poison a data set once; here a share of every batch of the corrupted clients.",
        "Bagdasaryan et al. train a backdoored model to the end and send its scaled difference; here the upload of one "
        "round is scaled, and there is no anomaly term in the loss.",
    ),
    check="no number of the papers; the success rate stands in every record, "
    "tests/attacks/poisoning/test_pixel_trigger.py",
    facts=(
        ("knows", "own: its own samples"),
        ("sends", "scale times the protocol's own upload on the poisoned batch"),
        ("needs", "images"),
    ),
)
