"""Two-stage, Table 3: Gaussian attackers on MNIST.

The table's other rows are those of an earlier paper (Zhu & Ling 2022), which ran another rule
(`two-stage/sign-rules`)."""

from __future__ import annotations

from dataclasses import replace

from fedarena.reproduce.two_stage import causes
from fedarena.reproduce.two_stage.causes import named
from fedarena.reproduce.two_stage.common import Experiment, accuracy_table

SETTING = "test accuracy on MNIST at ε = 0.125 under Gaussian attackers, by their share"

PAPER = {0.6: 0.86, 0.4: 0.86}
"""Byzantine share → accuracy."""

AS_IN_FIGURE_1 = 0.6
"""The share that Figure 1 also has by the released code."""

PLAIN = [
    Experiment(data="mnist", title="gaussian", paper=paper, byzantine=share, epsilon=0.125, attack="gaussian")
    for share, paper in PAPER.items()
]

EXPERIMENTS = [
    replace(
        experiment,
        causes=causes.rows(
            *(
                [(causes.DIVISOR, named(experiment, "gaussian, released code", "two-stage/figure1"))]
                if experiment.byzantine == AS_IN_FIGURE_1
                else []
            ),
            (causes.DIVISOR, named(experiment, "gaussian", "two-stage/logs-shares")),
        ),
    )
    for experiment in PLAIN
]

TABLE = accuracy_table(SETTING, EXPERIMENTS)
