"""Card and options of `soteria`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of Soteria."""

    share: float = option(0.8, "share of the representation's entries that is pruned", above=0, below=1)


CARD = Card(
    name="soteria",
    kind="defense",
    title="Soteria: the last representation is pruned where it tells most of the input",
    target="fedarena.defenses.soteria.protocol:Soteria",
    options=Options,
    paper="Soteria: Provable Defense Against Privacy Leakage in Federated Learning from Representation Perspective "
    "(CVPR)",
    authors="Sun, Li, Wang, Li, Yang, Chen",
    year=2021,
    url="https://arxiv.org/abs/2012.06043",
    equations="Section 4.2, the approximation for the L0 norm",
    departures=(
        "The defended layer is the output layer, as in the released code for its small convolutional network.",
        "In a batch one set of entries is pruned for all samples, by the sum of their ratios, as in the released code. "
        "An entry that is 0 for a sample has an infinite ratio: pruning it would change nothing.",
        "Clients send gradients of one batch; the paper lets them take local steps.",
    ),
    check="an upload against loops over units and samples: tests/defenses/soteria",
    facts=(
        ("down", "W"),
        ("up", "∂L/∂W, with some columns of the output layer's weights set to 0"),
        ("server knows", "W, every upload, and by the columns of zeros which entries were pruned"),
        ("malicious server chooses", "the model that each client gets"),
        ("client knows", "W in its rounds, its own data; from two consecutive W the others' mean upload"),
        ("eavesdropper knows", "both wires, which is all that the server knows"),
        (
            "forms",
            "in paper form the zeros are matched as if they were the gradient's own; in adaptive form the pruned "
            "columns are left out, and all other layers are matched (Balunović et al. 2022)",
        ),
    ),
)
