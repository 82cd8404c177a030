"""Why our numbers differ from those of the two-stage paper and its authors' logs, each with the row that shows it."""

from __future__ import annotations

from fedarena.reproduce.published import Cause
from fedarena.reproduce.two_stage.common import Experiment

BY_TEXT = "ours is by the text, the number by the released code"
OF_TEXT = "ours has the text's rule and attacker, not the released code's"
DIVISOR = "the text's rule divides by all workers, the released code's by those selected"
WEIGHTS = "the code draws its initial weights from one seed, and its ELU is a ReLU"
BLUR = "the authors' copy of USPS is blurred"
BLUR_AND_RELU = "the authors' copy of USPS is blurred, and their ELU is a ReLU"
OWN = {"mnist": WEIGHTS, "usps": BLUR_AND_RELU}
"""Data set → what the authors had besides the rule and the attacker of their code."""
ALL = "the authors' data, initial weights and network"
LOG = "the authors' logs have another mean for this run, and ours agrees with it"


def named(experiment: Experiment, title: str, table: str = "") -> str:
    """The name of the row of the same data set and ε with another title, of another table if one is given."""
    noise = "∞" if experiment.epsilon is None else f"{experiment.epsilon:g}"
    own = f"{experiment.data}, ε = {noise}, {title}, {experiment.byzantine:.0%} Byzantine"
    return f"{table}: {own}" if table else own


def rows(*causes: tuple[str, str]) -> tuple[Cause, ...]:
    """Causes by text and the row that shows it."""
    return tuple(Cause(text, row) for text, row in causes)
