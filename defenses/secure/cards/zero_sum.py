"""Card and options of `zero-sum`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of zero-sum masks."""

    spread: float = option(
        1.0, "standard deviation of a mask's entry, in the units of the weighted upload (not relative to it)", above=0
    )
    repeat: int = option(
        1, "equal parts of an upload that share one mask; 3: as PBPFL prints it, one mask for its three tensors", low=1
    )


CARD = Card(
    name="zero-sum",
    version=2,
    kind="secure",
    title="Float masks that sum to zero, from a trusted dealer",
    target="fedarena.defenses.secure.zero_sum:ZeroSum",
    options=Options,
    paper="Does Federated Learning Really Need Backpropagation?",
    authors="Feng, Pang, Du, Chen, Yan, Lin",
    year=2023,
    url="https://arxiv.org/abs/2301.12195",
    equations="Algorithm 1, lines 9 and 13: u_c = ΔL_c + (N/N_c) ε_c with Σ_c ε_c = 0",
    departures=(
        "The paper's clients negotiate the masks and it does not say how; here a trusted dealer draws and sends them.",
        "The paper gives masks no distribution; here Gaussians less their mean.",
        "Every coordinate has its own mask: ε_c read as one number for all would cancel in differences of coordinates.",
    ),
    check="no number of the paper; tests/defenses/secure: what the server can distinguish, and how exact the sum is",
    facts=(
        ("up", "v + ε as floats, no further bytes"),
        ("down", "the dealer's mask: as many floats as are sent up"),
        ("server knows", "v + ε of every client: noise of a known size, not uniform words; and the sum, rounded"),
        (
            "repeat",
            "differences of the parts of every client's upload are in clear; in the adaptive form server and "
            "eavesdropper read them as 'shared mask' (fedarena.contracts.shared_mask)",
        ),
        (
            "malicious server chooses",
            "models, different ones for each client, as with pairwise-masks. Masks are of a known size, which a model "
            "with long gradients exceeds",
        ),
        ("client knows", "its own mask"),
        ("eavesdropper knows", "what the server knows"),
        ("dealer knows", "all masks, and with the wire all vectors"),
    ),
)
