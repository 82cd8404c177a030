"""Card and options of `censor`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of CENSOR."""

    trials: int = option(20, "random vectors of which the one with the smallest loss is sent", low=1, high=10_000)
    variant: str = option(
        "paper",
        "paper: r − ⟨r, g⟩g/‖g‖² is orthogonal to g; code: r − ⟨r, g⟩g/‖g‖, as the released code has it, which is not, "
        "and g itself where no trial lowers the loss",
        choices=("paper", "code"),
    )
    step: float = option(1e-4, "the step along a vector at which the loss is compared", above=0)


CARD = Card(
    name="censor",
    kind="defense",
    title="CENSOR: a random vector orthogonal to the gradient, chosen by the loss",
    target="fedarena.defenses.censor.protocol:Censor",
    options=Options,
    paper="CENSOR: Defense Against Gradient Inversion via Orthogonal Subspace Bayesian Sampling (NDSS)",
    authors="Kaiyuan Zhang, Cheng, Shen, Ribeiro, An, Chen, Zhang, Li",
    year=2025,
    url="https://arxiv.org/abs/2501.15718",
    equations="Algorithm 1",
    departures=(
        "The trial with the smallest loss is sent, even where none lowers the loss. The released code then sends the "
        "gradient itself (variant=code).",
        "All rounds are defended; the released code defends the first ten epochs, and sends gradients afterwards.",
        "Clients send gradients of one batch; a vector that is orthogonal to an update of several steps is not tried.",
    ),
    check="orthogonality in each tensor, and that the released code's vectors are not: tests/defenses/censor",
    facts=(
        ("utility", "none where it was tried: the sum of vectors orthogonal to gradients is no descent direction"),
        ("down", "W"),
        ("up", "for each tensor of ∂L/∂W a random one of its length, orthogonal to it"),
        ("server knows", "W, every upload, and so one linear equation in each tensor of the gradient"),
        ("malicious server chooses", "the model that each client gets"),
        ("client knows", "W in its rounds, its own data; from two consecutive W the others' mean upload"),
        ("eavesdropper knows", "both wires, which is all that the server knows"),
        (
            "forms",
            "in paper form the upload is matched as if it were the gradient; in adaptive form each tensor's length is "
            "matched, and with variant=paper that its product with the upload is 0. With variant=code the upload is "
            "tried as the gradient as well",
        ),
    ),
)
