"""Card and options of `analytic`."""

from dataclasses import dataclass

from fedarena.attacks.reconstruction.helpers.search_options import VictimOptions
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(VictimOptions):
    """Options of the analytic reconstruction."""

    prior: str = option(
        "none",
        "prior for what was not seen: none, the sample of least norm; population, the Gaussian distribution of "
        "the attacker's own samples",
        choices=("none", "population"),
    )


CARD = Card(
    name="analytic",
    kind="attack",
    goal="reconstruction",
    title="Samples read off a dense first layer with a bias",
    target="fedarena.attacks.reconstruction.analytic:Analytic",
    options=Options,
    version=2,
    paper="Inverting Gradients: How Easy Is It to Break Privacy in Federated Learning? (NeurIPS)",
    authors="Geiping, Bauermeister, Dröge, Moeller",
    year=2020,
    url="https://arxiv.org/abs/2003.14053",
    equations="Proposition 3.1, first by Phong et al. 2017, Section 3",
    departures=(
        "All rows are read at once, by their strongest direction, where the papers divide one row by its bias.",
        "Behind a protocol the ratio is affine in the sample; the map is found by playing the protocol on single "
        "pixels, and inverted by the least norm or under a Gaussian distribution of images.",
        "Batches: rows of units that are active for one sample alone are found by their agreement (Boenisch et al. "
        "2023 read them one by one).",
        "If some attacked uploads cannot be read, such as those of no sample or with the momentum of earlier ones, "
        "the guess for them is grey, and they count as not recovered.",
    ),
    check="Proposition 3.1: single samples come back exactly, tests/attacks/reconstruction/test_analytic.py",
    facts=(
        (
            "reads",
            "the gradient or update of a dense first layer with a bias, as seen, and its own plays of the protocol",
        ),
        (
            "model",
            "mlp and the like; n/a where the first layer is convolutional or has no bias, or no upload can be read",
        ),
        ("knows", "with prior=population half of the held-out data"),
    ),
    usual=(("model", "mlp"), ("lr", "0.05")),
)
