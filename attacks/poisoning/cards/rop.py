"""Card and options of `rop`."""

from dataclasses import dataclass

from fedarena.attacks.poisoning.helpers.tuning_options import TuningOptions
from fedarena.attacks.poisoning.helpers.usual_problem import USUAL
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(TuningOptions):
    """Options of ROP."""

    z: float | None = option(None, "length of the perturbation; none: ALIE's z", above=0)
    pi: float = option(1.0, "π: 1 starts from the server's last step, 0 from the honest mean", low=0, high=1)
    lam: float = option(0.9, "λ: weight of the server's last step in where the federation goes", low=0, high=1)
    angle: float = option(270.0, "φ, degrees between the perturbation and where the federation goes", low=0, below=360)


CARD = Card(
    name="rop",
    kind="attack",
    goal="poisoning",
    form="paper",
    usual=tuple((name, "8" if name == "corrupted" else value) for name, value in USUAL),
    title="ROP: a perturbation at a right angle, moved to the server's last step",
    target="fedarena.attacks.poisoning.rop:ROP",
    options=Options,
    paper="Byzantines Can Also Learn From History: Fall of Centered Clipping in Federated Learning (IEEE TIFS)",
    authors="Ozfatura, Ozfatura, Küpçü, Gündüz",
    year=2023,
    url="https://arxiv.org/abs/2208.09894",
    equations="Algorithm 2; defaults of the authors' released library",
    departures=(
        "The server's last step is read off two broadcasts. It is the aggregate where the server takes plain steps.",
        "In the first round, in which there is no last step, the upload starts from zeros, as in the released code.",
        "knows=own takes μ over what the colluders would have sent themselves.",
    ),
    check="the released code's upload, recomputed by hand: tests/attacks/poisoning/test_rop.py",
    facts=(
        ("knows", "omniscient: the mean of the honest uploads; own: the mean of its own honest uploads"),
        ("needs", "broadcasts that show the model in clear; it is made for clients with momentum"),
        ("strength", "z grows with the share of corrupted clients: 0.16 for 4 of 20, 0.67 for 8 of 20 (usual here)"),
        ("sends", "the same upload from every colluder"),
    ),
)
