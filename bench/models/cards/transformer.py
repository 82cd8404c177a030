"""Card and options of `transformer`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option
from fedarena.models.cards.distributions import init_option


@dataclass(frozen=True)
class Options:
    """Options of the small transformer."""

    width: int = option(128, "d, numbers that stand for one word", low=1)
    layers: int = option(2, "blocks of attention and MLP", low=1)
    heads: int = option(4, "heads of each attention; a divisor of the width", low=1)
    causal: bool = option(True, "a word sees the words before it alone (a decoder); False: all words (an encoder)")
    lora: int = option(
        0,
        "rank of the trained adapters of q, k, v and o, with all else but the output layer frozen; 0: no adapters, all "
        "is trained",
        low=0,
    )
    init: str = init_option("default")


CARD = Card(
    name="transformer",
    kind="model",
    title="Small transformer for texts, with low-rank adapters if wanted",
    target="fedarena.models.transformer:Transformer",
    options=Options,
    paper="Attention Is All You Need (NeurIPS)",
    authors="Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser, Polosukhin",
    year=2017,
    url="https://arxiv.org/abs/1706.03762",
    equations="Section 3, pre-norm, without cross-attention; lora: Hu et al. 2022 (arXiv:2106.09685), Eq. 3",
    departures=(
        "Norms come before attention and MLP, as in GPT-2, and have no parameters: the harness allows none.",
        "Positions are trained vectors, and the mean over words goes into the output layer.",
        "No dropout.",
        "lora: the scale α/r is 1, and the frozen weights are random, because nothing pretrained is shipped.",
    ),
    facts=(
        ("inputs", "texts [length, words], each word a one-hot code or weights of words, so that gradients exist"),
        ("hidden units of an MLP", "4·width"),
        ("frozen with lora", "known to every party, never sent, the same for every seed"),
    ),
    check="418,310 parameters on 7x165 inputs and 6 classes: tests/models/test_transformer.py",
)
