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
        "fedmia: against the other clients' uploads; avg-cosine: the cosine alone; grad-diff: ‖v‖² − ‖v − a(x)‖²",
        choices=("fedmia", "avg-cosine", "grad-diff"),
    )


CARD = Card(
    name="fedmia",
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
        "Of the two measures of the paper it has the cosine (FedMIA-II), and none by the loss of local models.",
        "The paper's rounds are every tenth; here the harness draws them.",
        "In a round in which fewer than two other clients are seen one by one, as with a secure sum, the cosine itself "
        "takes the place of Φ.",
        "`grad-diff` sums over rounds; its authors (Li, Li, Ribeiro) look at one.",
    ),
    equations="score(x, c) = Σ_t Φ((s_tc − μ_t)/σ_t), s_tc = cos(a_t(x), v_tc), μ_t and σ_t of the other clients",
    facts=(
        ("goal", "client-membership: half of the candidates are in the client's data set, half are held out"),
        ("reads", "every client's uploads, in rounds of the whole training"),
    ),
    usual=(*FEW_SAMPLES, ("model.widths", "64")),
)
