"""Two-stage, Table 3: Gaussian attackers on MNIST.

The table's other rows are those of an earlier paper (Zhu & Ling 2022), which ran other rules."""

from __future__ import annotations

from fedarena.reproduce.two_stage.common import Experiment, accuracy_table

SETTING = "test accuracy on MNIST at ε = 0.125 under Gaussian attackers, by their share"

PAPER = {0.6: 0.86, 0.4: 0.86}
"""Byzantine share → accuracy."""

EXPERIMENTS = [
    Experiment(data="mnist", title="gaussian", paper=paper, byzantine=share, epsilon=0.125, attack="gaussian")
    for share, paper in PAPER.items()
]

TABLE = accuracy_table(SETTING, EXPERIMENTS)
