"""Card and options of `gaussian`."""

from dataclasses import dataclass

from fedarena.attacks.poisoning.helpers.tuning_options import TuningOptions
from fedarena.attacks.poisoning.helpers.usual_problem import USUAL
from fedarena.core.card import Card
from fedarena.core.options import option

CLASSICAL = 200.0
"""Standard deviation against a defense without noise (Blanchard et al. 2017)."""


@dataclass(frozen=True)
class Options(TuningOptions):
    """Options of Gaussian uploads."""

    std: float | None = option(
        None,
        "standard deviation of each coordinate; none: that of the defense's own noise, or 200 where it adds none",
        low=0,
    )


CARD = Card(
    name="gaussian",
    kind="attack",
    goal="poisoning",
    form="paper",
    usual=USUAL,
    title="Gaussian uploads: noise without a signal",
    target="fedarena.attacks.poisoning.gaussian:Gaussian",
    options=Options,
    paper="Machine Learning with Adversaries: Byzantine Tolerant Gradient Descent (NeurIPS)",
    authors="Blanchard, El Mhamdi, Guerraoui, Stainer",
    year=2017,
    url="https://arxiv.org/abs/1703.02757",
    equations="Section 6, Gaussian Byzantine workers, N(0, 200²); the defense's noise as in Xiang et al. (SIGMOD "
    "2023), Section 3.2",
    departures=(
        "One default for both papers: the defense's own noise level where it has one, else 200. Set std to fix it.",
    ),
    check="no number of the papers; tests/attacks/poisoning/test_gaussian.py",
    facts=(
        ("knows", "own: the noise level, which is public, and the shape of an upload"),
        ("tunes", "std"),
        ("sends", "noise alone, fresh for each client and round"),
    ),
)
