"""Card and options of `dager`."""

from dataclasses import dataclass

from fedarena.attacks.reconstruction.helpers.search_options import VictimOptions
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(VictimOptions):
    """Options of DAGER."""

    tolerance: float = option(
        1e-3, "relative distance from a span up to which a word or a text passes the check", above=0, below=1
    )
    rank_tolerance: float = option(
        1e-7, "share of the largest singular value below which others are rounding, where no noise is known", above=0
    )
    beam: int = option(
        128, "beginnings of texts that are continued at a place, at most, if the batch has no more texts", low=1
    )


CARD = Card(
    name="dager",
    kind="attack",
    goal="reconstruction",
    title="DAGER: texts read off the gradients of two layers of attention, exactly",
    target="fedarena.attacks.reconstruction.dager:Dager",
    options=Options,
    paper="DAGER: Exact Gradient Inversion for Large Language Models (NeurIPS)",
    authors="Petrov, Dimitrov, Baader, Müller, Vechev",
    year=2024,
    url="https://arxiv.org/abs/2405.15586",
    equations="Theorem 5.1, Algorithms 1 and 2 for decoders",
    departures=(
        "The gradients of q, k and v are read together, where the paper reads that of q. At the first word of "
        "a causal text that of q is 0, and adapters of a small rank show more words so.",
        "One tolerance of 1e-3 for both layers; the authors' is 1e-5 in the first one.",
        "Under noise of a known standard deviation, directions below its largest singular value are left out, and the "
        "best beginnings are continued where none passes. The authors' code keeps outliers among distances.",
        "Where a batch has as many different beginnings as the width has dimensions, the best ones are the guess. The "
        "authors' code gives up 20 dimensions below the width.",
        "Labels are read off the output layer, from the features of the texts found; the paper takes them as known.",
        "The gradient of the embedding, which names the words of a batch, is not read, as in the paper.",
    ),
    check="Table 1: ROUGE above 99 % for batches of 1 to 16: tests/attacks/reconstruction/test_dager.py",
    facts=(
        ("reads", "the gradients of q, k and v in the first two layers of attention, of adapters those of A"),
        (
            "model",
            "a transformer with causal attention; n/a for others, and where no gradient of its weights was seen",
        ),
        (
            "limits",
            "different beginnings of texts in a batch below the width; with adapters below three times the rank",
        ),
    ),
    usual=(("dataset", "clinic-notes"), ("model", "transformer"), ("lr", "0.1"), ("batch_size", "4")),
)
