"""Card and options of `tag`."""

from dataclasses import dataclass
from typing import ClassVar

from fedarena.attacks.reconstruction.helpers.search_options import VictimOptions
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(VictimOptions):
    """Options of TAG."""

    victims: int = option(3, "uploads attacked, spread evenly over the window", low=1)
    iterations: int = option(1000, "steps of Adam per victim", low=1)
    lr: float = option(0.1, "learning rate at the start; it falls to a thousandth along a cosine", above=0)
    alpha: float = option(0.1, "α, weight of the absolute differences in the first tensor", low=0)
    restarts: int = option(1, "starts per victim; the best match is kept", low=1)
    labels: str = option(
        "inferred",
        "inferred from the output layer, and optimized with the texts where it is not seen; or given to the attacker",
        choices=("inferred", "optimized", "given"),
    )
    max_batch: int = option(16, "most samples behind one upload that are tried", low=1)

    tv: ClassVar[float] = 0.0
    init: ClassVar[str] = "normal"


CARD = Card(
    name="tag",
    kind="attack",
    goal="reconstruction",
    title="TAG: texts by matching gradients, squared and absolute",
    target="fedarena.attacks.reconstruction.tag:Tag",
    options=Options,
    paper="TAG: Gradient Attack on Transformer-based Language Models (Findings of EMNLP)",
    authors="Deng, Wang, Li, Wang, Shang, Liu, Rajasekaran, Ding",
    year=2021,
    url="https://arxiv.org/abs/2103.06819",
    equations="Eq. 5 and Algorithm 1",
    departures=(
        "The search is for weights of words, which are positive and sum to 1 at each place; the authors search for "
        "embeddings and take the nearest word.",
        "Adam takes the place of the authors' AdamW, and the learning rate falls along a cosine.",
        "α falls evenly from the first tensor to the last one; the paper says only that it is larger near the input.",
        "Labels are inferred from the output layer; the authors search for them too, as labels=optimized does. How "
        "many words that finds depends on the start and on lr.",
    ),
    check="one text of a small transformer comes back: tests/attacks/reconstruction/test_tag.py",
    facts=(
        ("reads", "any view of a text model that offers a simulator of what was observed"),
        ("model", "texts as one-hot codes of words [length, words]; other inputs are refused"),
    ),
    usual=(("dataset", "clinic-notes"), ("model", "transformer"), ("lr", "0.1")),
)
