"""Card and options of `alie`."""

from dataclasses import dataclass

from fedarena.attacks.poisoning.helpers.tuning_options import TuningOptions
from fedarena.attacks.poisoning.helpers.usual_problem import USUAL
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(TuningOptions):
    """Options of ALIE."""

    z: float | None = option(
        None, "standard deviations from the mean; none: the largest that the paper's formula allows", above=0
    )


CARD = Card(
    name="alie",
    kind="attack",
    goal="poisoning",
    form="paper",
    usual=tuple((name, "8" if name == "corrupted" else value) for name, value in USUAL),
    title="ALIE: a little is enough",
    target="fedarena.attacks.poisoning.alie:ALIE",
    options=Options,
    paper="A Little Is Enough: Circumventing Defenses For Distributed Learning (NeurIPS)",
    authors="Baruch, Baruch, Goldberg",
    year=2019,
    url="https://arxiv.org/abs/1902.06156",
    equations="Algorithm 3; Section 3.2 for z",
    departures=(
        "n and m in the formula of z are those of the federation, also when only a share of it takes part in a round.",
        "The authors' code takes z = 1.5 for all n and m: z=1.5.",
        "The paper estimates from the colluders' own samples (knows=own); knows=omniscient estimates from the honest "
        "uploads themselves.",
        "Where the colluders are a majority, or z would not be positive, the attack is not applicable unless z is set "
        "or tuned.",
    ),
    check="Section 3.2's formula for 24 of 50 corrupted: z = Φ⁻¹(24/26) = 1.43; tests/attacks/poisoning/test_alie.py",
    facts=(
        ("knows", "own: mean and deviation of what it would have sent itself; omniscient: of the honest uploads"),
        ("needs", "two corrupted clients with knows=own; a round in which one alone takes part gets its honest upload"),
        (
            "strength",
            "z grows with the share of corrupted clients: 0.16 for 4 of 20, 0.67 for 8 of 20 (usual here)",
        ),
        ("sends", "the same upload from every colluder"),
    ),
)
