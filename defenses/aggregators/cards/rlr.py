"""Card and options of `rlr`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of the robust learning rate."""

    theta: int | None = option(
        None, "θ: |Σ sign| below which a coordinate is flipped; none: 2/5 of the uploads, rounded up", low=1
    )


CARD = Card(
    name="rlr",
    kind="aggregator",
    title="Robust learning rate: coordinates without agreement are flipped",
    target="fedarena.defenses.aggregators.rlr:RLR",
    options=Options,
    paper="Defending against Backdoors in Federated Learning with Robust Learning Rate (AAAI)",
    authors="Ozdayi, Kantarcioglu, Gel",
    year=2021,
    url="https://arxiv.org/abs/2007.03767",
    equations="the learning rate η_θ: η where |Σ_i sgn Δ_i| ≥ θ, and −η elsewhere",
    departures=(
        "θ is by default ⌈2n/5⌉, which is the 4 of 10 of the released README; zhmzm/FLAME takes 4 as well "
        "(--robustLR_threshold), and its users report that RLR trains no ResNet-18 there (its issue 2).",
        "In the paper an upload is the difference of a local training. In FedSGD it is one batch's gradient, whose "
        "signs agree less.",
    ),
    check=(
        "no number of the paper; tests/defenses/aggregators holds it to the definition written with loops, and shows "
        "on 20 clients with digits what it stops and what it costs"
    ),
    facts=(
        ("wraps", "another rule, such as mean or median"),
        (
            "stops",
            "A pixel trigger of 2 of 20 iid clients with θ = 8: success 72 % without it, 0 % with it, accuracy 84 % "
            "in place of 90 %. That of 4 clients is stopped on some seeds only.",
        ),
        ("needs", "θ ≤ n, and what the other rule needs"),
    ),
)
