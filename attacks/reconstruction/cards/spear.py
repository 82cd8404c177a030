"""Card and options of `spear`."""

from dataclasses import dataclass

from fedarena.attacks.reconstruction.cards.analytic import Options as AnalyticOptions
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(AnalyticOptions):
    """Options of SPEAR."""

    draws: int = option(200_000, "sets of units drawn for each upload, at most (the paper's N)", low=1)
    sparsity: float = option(
        0.15,
        "share of the units that a sample leaves inactive, at least (the paper's τ); it counts where directions are "
        "drawn in subspaces, in which chance zeros are common",
        low=0,
        high=1,
    )
    max_batch: int = option(24, "most samples behind one upload that directions are drawn for", low=2)


CARD = Card(
    name="spear",
    kind="attack",
    goal="reconstruction",
    title="SPEAR: whole batches read off a dense first layer with ReLUs, exactly",
    target="fedarena.attacks.reconstruction.spear:Spear",
    options=Options,
    version=3,
    paper="SPEAR: Exact Gradient Inversion of Batches in Federated Learning (NeurIPS)",
    authors="Dimitrov, Baader, Müller, Vechev",
    year=2024,
    url="https://arxiv.org/abs/2403.03945",
    equations="Algorithms 1 and 2",
    departures=(
        "A set of directions is accepted when its samples lie in [0, 1] and reproduce what was seen, where the paper "
        "compares the signs of W x + b with the zeros.",
        "A draw takes its units from those with the shortest rows, which are active for few samples, where the paper "
        "draws from all.",
        "Each direction is fitted anew to all units that it makes zero, where the paper keeps the one that was drawn.",
        "Where single units show samples already, directions are drawn in the subspaces that these leave open.",
        "Behind a protocol the samples' map is found by playing it, as `analytic` does.",
        "Where too few directions are found, the guess is that of `analytic`.",
    ),
    check="batches of 2 to 8 come back exactly, with the success rates of tests/attacks/reconstruction/test_spear.py",
    facts=(
        (
            "reads",
            "the gradient or update of a dense first layer with a bias, as seen, and its own plays of the protocol",
        ),
        (
            "model",
            "mlp with ReLUs, more units than samples; n/a where the first layer is convolutional or has no bias, or no "
            "upload can be read",
        ),
        ("knows", "with prior=population half of the held-out data"),
    ),
    usual=(("model", "mlp"), ("lr", "0.05"), ("batch_size", "8")),
)
