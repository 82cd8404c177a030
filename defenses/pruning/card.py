"""Card and options of `pruning`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of gradient pruning."""

    share: float = option(0.9, "share of each tensor's entries that is left out", above=0, below=1)


CARD = Card(
    name="pruning",
    kind="defense",
    title="Gradient pruning: the largest entries of an upload alone",
    target="fedarena.defenses.pruning.protocol:Pruning",
    options=Options,
    paper="Deep Leakage from Gradients (NeurIPS)",
    authors="Zhu, Liu, Han",
    year=2019,
    url="https://arxiv.org/abs/1906.08935",
    equations="Section 5, gradient compression and sparsification",
    departures=(
        "Nothing of what a client leaves out is added to its next upload. Compression methods do that (Lin et al. "
        "2018), and it would mix rounds.",
        "The largest entries are found in each tensor by itself, as Soteria's released code (Sun et al. 2021) does for "
        "its comparison.",
    ),
    check="no number of a paper; an upload against loops: tests/defenses/pruning",
    facts=(
        ("down", "W"),
        ("up", "the entries of ∂L/∂W, or of W − W_local, with the largest magnitudes in each tensor"),
        ("server knows", "W, every upload, and by the zeros which entries were left out"),
        ("malicious server chooses", "the model that each client gets"),
        ("client knows", "W in its rounds, its own data; from two consecutive W the others' mean upload"),
        ("eavesdropper knows", "both wires, which is all that the server knows"),
        (
            "forms",
            "in paper form the zeros are matched as if they were the gradient's own; in adaptive form the entries that "
            "were sent are matched, and nothing else",
        ),
    ),
)
