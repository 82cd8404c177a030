"""Card and options of `rank-map`."""

from dataclasses import dataclass

from fedarena.attacks.poisoning.helpers.usual_problem import USUAL
from fedarena.core.card import Card
from fedarena.core.options import option

FORM_HELP = (
    "values of an upload: normal quantiles, which no test of normality rejects, or a fresh normal sample, "
    "which tests reject as often as honest noise"
)


@dataclass(frozen=True)
class Options:
    """Options of the rank map."""

    form: str = option("quantiles", FORM_HELP, choices=("quantiles", "sample"))


CARD = Card(
    name="rank-map",
    kind="attack",
    goal="poisoning",
    form="adaptive",
    usual=USUAL,
    title="Rank map: another attack disguised as honest noise (rank-map+ATTACK)",
    target="fedarena.attacks.poisoning.rank_map:RankMap",
    options=Options,
    equations="g = σ_u·Φ⁻¹((rank(v) − ½)/d); answers Section 4.6 of arXiv:2304.09762 (Guideline 1), which rates the "
    "search for a particular order at O(d!)",
    departures=("Not from a paper: the attack that the two-stage protocol's paper did not try.",),
    check="norm, Kolmogorov-Smirnov distance and cosine with the direction: tests/attacks/poisoning/test_rank_map.py",
    facts=(
        ("knows", "what the attack inside knows, and the standard deviation of honest noise, which is public"),
        ("wraps", "another poisoning attack, as in rank-map+ipm"),
        ("needs", "a defense whose clients add Gaussian noise"),
        ("tuning", "refused where the attack inside tunes nothing but the length of uploads, which has no effect"),
    ),
)
