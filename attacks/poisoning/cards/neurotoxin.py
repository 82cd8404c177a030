"""Card and options of `neurotoxin`."""

from dataclasses import dataclass

from fedarena.attacks.poisoning.helpers.local_options import LocalOptions
from fedarena.attacks.poisoning.helpers.usual_problem import USUAL
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(LocalOptions):
    """Options of Neurotoxin."""

    masked: float = option(0.01, "share of coordinates that it leaves alone; 0: it trains all", low=0, below=1)
    scale: float = option(1.0, "factor on the upload", above=0)
    reference: str = option(
        "honest",
        "whose largest coordinates these are; honest: those of uploads by the protocol; movement: the model's last one",
        choices=("honest", "movement"),
        idle_with=("masked", 0.0),
    )


CARD = Card(
    name="neurotoxin",
    version=2,
    kind="attack",
    goal="poisoning",
    form="paper",
    usual=USUAL,
    title="Neurotoxin: a backdoor where honest clients hardly move (neurotoxin+ATTACK)",
    target="fedarena.attacks.poisoning.neurotoxin:Neurotoxin",
    options=Options,
    paper="Neurotoxin: Durable Backdoors in Federated Learning (ICML)",
    authors="Zhang, Panda, Song, Yang, Mahoney, Mittal, Ramchandran, Gonzalez",
    year=2022,
    url="https://arxiv.org/abs/2206.10341",
    equations="Algorithm 1",
    departures=(
        "masked = 0.01 is BackFed's gradient_mask_ratio of .99, which is the share that is trained. FLPoison leaves "
        "the largest tenth alone: masked=0.1.",
        "The largest coordinates are those of the whole model, as in the authors' code with aggregate_all_layer=1. "
        "With 0 the code takes the same share of every layer.",
        "Algorithm 1 takes the last update that the attacker saw (reference=movement), the authors' code a gradient of "
        "its clean samples. Here the colluders' uploads by the protocol stand for it. Where colluders are many, the "
        "model's largest movements are their own: they would bar themselves from what they have gained.",
        "The authors' bound on the length of an upload (s_norm) is the option ball, without a bound by default: the "
        "defense's own stands in its place.",
    ),
    check="the mask and the coordinates that are sent: tests/attacks/poisoning/test_local_backdoors.py; "
    "benchmarks/backdoors.py measures its lifespan. The paper's lasts longer than an unmasked one; on digits this one "
    "does with a wide network and masked=0.3, by 16 rounds (2.3 to 29.7), and with reference=movement never",
    facts=(
        ("knows", "own: its own samples and the broadcasts"),
        ("needs", "a broadcast that shows the model, and uploads that are its changes"),
        ("wraps", "an attack on samples, as in neurotoxin+pixel-trigger"),
    ),
)
