"""Card and options of `vit`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option
from fedarena.models.cards.distributions import init_option


@dataclass(frozen=True)
class Options:
    """Options of the vision transformer."""

    patch: int | None = option(
        None, "pixels a side of a patch; none: 2 where a side has fewer than 16 pixels, else 4", low=1
    )
    width: int = option(64, "numbers that stand for a patch", low=1)
    layers: int = option(2, "transformer blocks", low=1)
    heads: int = option(4, "attention heads of a block; they divide the width", low=1)
    positions: str = option(
        "trained",
        "what is added to a patch for its position: trained vectors, or sines, which are fixed and never sent",
        choices=("trained", "sines"),
    )
    mean: float = option(0.5, "subtracted from every pixel")
    std: float = option(0.5, "divides every pixel", above=0)
    init: str = init_option("default")


CARD = Card(
    name="vit",
    kind="model",
    title="Small vision transformer (ViT): patches, positions, pre-norm blocks",
    target="fedarena.models.vit:ViT",
    options=Options,
    paper="An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale (ICLR)",
    authors="Dosovitskiy, Beyer, Kolesnikov, Weissenborn, Zhai, Unterthiner, Dehghani, Minderer, Heigold, Gelly, "
    "Uszkoreit, Houlsby",
    year=2021,
    url="https://arxiv.org/abs/2010.11929",
    equations="Eq. 1–4; the MLP of a block has four times the width, as in Table 1",
    departures=(
        "The mean of all tokens enters the output layer, in place of a class token (Beyer, Zhai & Kolesnikov 2022, "
        "arXiv 2205.01580).",
        "Norms have no parameters, and there is no dropout.",
        "Initial values are those of `init`, also of the positions: by default U(±1/√P) for P patches.",
        "With positions=sines the vectors are those of Vaswani et al. 2017, Section 3.5, by the patch's number.",
    ),
    facts=(
        ("inputs", "images whose sides are multiples of the patch's"),
        ("batches", "each sample by itself: no statistics of a batch"),
        ("training", "learns sooner by the server's Adam (server_optimizer=adam, lr=0.003) than by plain steps"),
        ("speed", "clients under torch.func.vmap where a step is general; there is no faster form of its own"),
    ),
    check="104,330 parameters on 1x28x28 inputs and 10 classes, and PyTorch's own layers give the same outputs: "
    "tests/models/test_vit.py",
)
"""The parameters: 16·64 + 64 of patches, 49·64 of positions, 2 blocks of 4·(64² + 64) + 2·64·256 + 320, 650."""
