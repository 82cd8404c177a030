"""Card and options of `analytic`."""

from dataclasses import dataclass

from fedarena.attacks.reconstruction.helpers.search_options import VictimOptions, prior_option
from fedarena.core.card import Card


@dataclass(frozen=True)
class Options(VictimOptions):
    """Options of the analytic reconstruction."""

    prior: str = prior_option("none")


@dataclass(frozen=True)
class CraftedModelOptions(Options):
    """Options of attacks that craft a model by samples of their own, which are also what they know of others."""

    prior: str = prior_option("population")


CARD = Card(
    name="analytic",
    kind="attack",
    goal="reconstruction",
    title="Samples read off a dense first layer with a bias",
    target="fedarena.attacks.reconstruction.analytic:Analytic",
    options=Options,
    version=3,
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
        "2023 read them one by one). The others are the rows that are the farthest from mixtures of those before them "
        "(successive projections).",
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
