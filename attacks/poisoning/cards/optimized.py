"""Card and options of `optimized`."""

from dataclasses import dataclass

from fedarena.attacks.poisoning.helpers.tuning_options import TuningOptions
from fedarena.attacks.poisoning.helpers.usual_problem import USUAL
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(TuningOptions):
    """Options of optimised local model poisoning."""

    against: str = option(
        "eq10",
        "the rule that it is made for: eq10 the two-stage DP protocol, krum, or trimmed-mean (and median)",
        choices=("eq10", "krum", "trimmed-mean"),
    )
    lam: float | None = option(
        None,
        "λ, so that the sum of all uploads is −λ times the honest one; none: M/√B − 1",
        low=0,
        acts_with=("against", "eq10"),
    )


CARD = Card(
    name="optimized",
    kind="attack",
    goal="poisoning",
    form="paper",
    usual=tuple((name, "5" if name == "corrupted" else value) for name, value in USUAL),
    title="Optimised local model poisoning: against the first stage, Krum or the trimmed mean",
    target="fedarena.attacks.poisoning.optimized:Optimized",
    options=Options,
    paper="Practical Differentially Private and Byzantine-resilient Federated Learning (SIGMOD)",
    authors="Xiang, Wang, Lin, Wang",
    year=2023,
    url="https://arxiv.org/abs/2304.09762",
    equations="Eq. 8-10; against=krum and trimmed-mean: Fang et al. (USENIX Security 2020, arXiv:1911.11815), Sections "
    "4.2 and 4.3",
    departures=(
        "Fang et al. poison models; here uploads, from which the server's last model is already subtracted.",
        "against=krum: all colluders send one and the same upload; Fang et al. let all but one differ by up to 0.01. "
        "Where no λ > 1e-5 passes, the colluders follow the protocol in that round.",
        "against=krum: Krum is run with the number of corrupted clients that the server expects, which is public; "
        "Fang et al. have one number for both. Their partial knowledge form against Krum is not offered.",
        "against=trimmed-mean with knows=own: standard deviations are those of the colluders' few uploads (÷ n).",
        "λ can be given (lam), or chosen on simulated runs (tune=N): then M > √B is not needed. Fang et al.'s forms "
        "find their own strength in every round.",
        "against=eq10 in a round in which few colluders take part sends the same formula, though λ may be negative.",
    ),
    check="no number of the papers; tests/attacks/poisoning/test_optimized.py holds each form to its formula",
    facts=(
        ("knows", "omniscient: every honest upload; against=trimmed-mean also own: its own honest uploads"),
        (
            "needs",
            "eq10 without a λ of its own: more colluders than √(honest clients); krum: m ≥ 2c + 2, a defined Krum",
        ),
        ("tunes", "λ of against=eq10"),
        ("sends", "the same upload from every colluder; against=trimmed-mean each its own draw"),
    ),
)
