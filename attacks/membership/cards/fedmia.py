"""Card and options of `fedmia`."""

from dataclasses import dataclass

from fedarena.attacks.membership.cards.usual import FEW_SAMPLES
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of FedMIA."""

    rounds: int = option(30, "rounds of the training that are read, drawn by the harness", low=1)
    statistic: str = option(
        "fedmia",
        "fedmia, fedmia-loss: cosine, or minus loss, against the other clients; avg-cosine, loss-series: of the client "
        "alone; grad-cosine, grad-diff (‖v‖² − ‖v − a(x)‖²), blackbox-loss: of the client alone in one round",
        choices=(
            "fedmia",
            "fedmia-loss",
            "avg-cosine",
            "loss-series",
            "grad-cosine",
            "grad-diff",
            "blackbox-loss",
        ),
    )


CARD = Card(
    name="fedmia",
    version=3,
    kind="attack",
    goal="client-membership",
    title="Membership in a client's data set, against the uploads of the other clients",
    target="fedarena.attacks.membership.fedmia:FedMIA",
    options=Options,
    paper="FedMIA: An Effective Membership Inference Attack Exploiting “All for One” Principle in Federated Learning",
    authors="Gongxi Zhu, Donghao Li, Hanlin Gu, Yuan Yao, Lixin Fan, Yuxing Han",
    year=2025,
    url="https://arxiv.org/abs/2402.06289",
    departures=(
        "The paper's rounds are every tenth; here the harness draws them.",
        "A round in which fewer than two other clients are seen one by one is left out. With a secure sum all are, and "
        "fedmia and fedmia-loss are n/a.",
        "Statistics of one round read the last of those that are drawn. The authors' code also takes the round in "
        "which the attack does best. That asks for the truth.",
        "The model of a loss is what the upload leads to. In FedSGD that is one step along the client's gradient. "
        "Against a defense it is the defended upload's model. The authors' clients send models.",
        "The code's sixth baseline, the norm of a candidate's gradient, reads no upload, and is left out.",
    ),
    equations="score(x, c) = Σ_t Φ((s_tc − μ_t)/σ_t), s_tc = cos(a_t(x), v_tc) or −L(W_tc; x), μ_t and σ_t of the "
    "other clients",
    facts=(
        ("goal", "client-membership: half of the candidates are in the client's data set, half are held out"),
        ("reads", "every client's uploads, in rounds of the whole training"),
        (
            "by loss",
            "fedmia-loss, loss-series, blackbox-loss: need the model that an upload leads to; a protocol that hides "
            "it gives no result",
        ),
    ),
    usual=(*FEW_SAMPLES, ("model.widths", "64")),
)
