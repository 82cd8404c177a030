"""Two-stage, Table 15: the cost of the noise alone, without Byzantine workers and without a defense.

`Non-DP`: the same per-sample normalising without noise."""

from __future__ import annotations

from dataclasses import replace

from fedarena.reproduce.two_stage import causes, table4
from fedarena.reproduce.two_stage.causes import named
from fedarena.reproduce.two_stage.common import Experiment, accuracy_table, noise_alone

SETTING = "test accuracy of DP alone, honest workers alone, by ε"

PAPER = {
    "mnist": {None: 0.98, 2.0: 0.96, 1.0: 0.95, 0.5: 0.95, 0.25: 0.93, 0.125: 0.88},
    "fashion-mnist": {None: 0.88, 2.0: 0.80, 1.0: 0.79, 0.5: 0.78, 0.25: 0.75, 0.125: 0.70},
    "usps": {None: 0.92, 2.0: 0.87, 1.0: 0.86, 0.5: 0.82, 0.25: 0.76, 0.125: 0.64},
}
"""Data set → ε → accuracy; None: no noise."""

PLAIN = noise_alone(PAPER)


def explained(experiment: Experiment) -> Experiment:
    """The experiment with what may make it differ from the paper."""
    found = [(causes.ALL, named(experiment, "DP alone", "two-stage/logs-alone"))] if experiment.epsilon else []
    if experiment.epsilon in table4.PAPER[experiment.data] and experiment.data == "usps":
        found.insert(0, (causes.BLUR, named(experiment, "RA, blur=0.75", "two-stage/table4")))
    return replace(experiment, causes=causes.rows(*found))


EXPERIMENTS = [explained(experiment) for experiment in PLAIN]

TABLE = accuracy_table(SETTING, EXPERIMENTS)
