"""Card and options of `mimic`."""

from dataclasses import dataclass

from fedarena.attacks.poisoning.helpers.usual_problem import USUAL
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of mimic."""

    warmup: int = option(20, "rounds in which the attacker follows the protocol and chooses whom to copy", low=1)


CARD = Card(
    name="mimic",
    kind="attack",
    goal="poisoning",
    form="paper",
    usual=(*USUAL, ("partition", "algorithm4")),
    title="Mimic: all colluders copy one honest client",
    target="fedarena.attacks.poisoning.mimic:Mimic",
    options=Options,
    paper="Byzantine-Robust Learning on Heterogeneous Datasets via Bucketing (ICLR)",
    authors="Karimireddy, He, Jaggi",
    year=2022,
    url="https://arxiv.org/abs/2006.09365",
    equations="Section 3.2; Appendix B, the choice of i* by the direction of largest variance, with Oja's method",
    departures=(
        "What Oja's method adds to z is normalised, so that the length of uploads does not decide how fast z turns.",
        "Where only a share of the clients takes part, the best one of the round is copied.",
        "If the length of uploads changes from round to round, the warm-up starts again and never ends.",
    ),
    check="no number of the paper; tests/attacks/poisoning/test_mimic.py",
    facts=(
        ("knows", "omniscient: every honest upload and whose it is"),
        ("needs", "clients that differ: its usual partition is algorithm4, because on iid shards a copy does little"),
        ("sends", "the same copy from every colluder"),
    ),
)
