"""Two-stage, Table 16: as Table 15, with the classes shared out unevenly (Algorithm 4)."""

from __future__ import annotations

from dataclasses import replace

from fedarena.reproduce.two_stage import causes
from fedarena.reproduce.two_stage.causes import named
from fedarena.reproduce.two_stage.common import accuracy_table, noise_alone

SETTING = "test accuracy of DP alone, honest workers alone, by ε, shards by Algorithm 4"

PAPER = {
    "mnist": {None: 0.98, 2.0: 0.96, 1.0: 0.95, 0.5: 0.95, 0.25: 0.93, 0.125: 0.88},
    "fashion-mnist": {None: 0.88, 2.0: 0.80, 1.0: 0.79, 0.5: 0.77, 0.25: 0.75, 0.125: 0.70},
    "usps": {None: 0.91, 2.0: 0.87, 1.0: 0.86, 0.5: 0.82, 0.25: 0.76, 0.125: 0.63},
}
"""Data set → ε → accuracy; None: no noise."""

PLAIN = noise_alone(PAPER, partition="algorithm4")

EXPERIMENTS = [
    replace(
        experiment,
        causes=causes.rows((causes.ALL, named(experiment, "DP alone, not iid", "two-stage/logs-alone"))),
    )
    if experiment.epsilon
    else experiment
    for experiment in PLAIN
]

TABLE = accuracy_table(SETTING, EXPERIMENTS)
