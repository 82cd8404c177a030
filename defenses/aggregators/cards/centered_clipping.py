"""Card and options of `centered-clipping`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of centered clipping."""

    tau: float | None = option(None, "clipping radius; none: the median of the distances to v", above=0)
    iterations: int = option(1, "steps of clipping a round", low=1, high=1000)


CARD = Card(
    name="centered-clipping",
    kind="aggregator",
    title="Centered clipping around the last aggregate",
    target="fedarena.defenses.aggregators.centered_clipping:CenteredClipping",
    options=Options,
    paper="Learning from History for Byzantine Robust Optimization (ICML)",
    authors="Karimireddy, He, Jaggi",
    year=2021,
    url="https://arxiv.org/abs/2012.10333",
    equations="Centered clipping: v ← v + (1/n) Σ (x_i − v) min(1, τ/‖x_i − v‖)",
    departures=(
        "τ is by default the median distance of the uploads to v. The paper's analysis wants τ in proportion to the "
        "honest distances to v, which are not known; with f < n/2 their median lies within the range of the honest "
        "ones. A constant (10 is common) is in units of one model's gradients: tau=10.",
        "Workers' momentum, which the paper's guarantee relies on, is up to the protocol: "
        "training.client_optimizer=momentum, in the paper's form with momentum_form=ema.",
    ),
    check=(
        "no number of the paper; tests/defenses/aggregators holds it to the definition written with loops, and to "
        "ByzFL with the same τ, over rounds"
    ),
    facts=(
        ("needs", "n ≥ 2f + 1"),
        ("memory", "v, what the rule returned last round; 0 at first"),
    ),
)
