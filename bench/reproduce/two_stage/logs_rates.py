"""Two-stage, the authors' logs behind Figure 3 (MNIST): one learning rate tuned at ε = 2 serves every ε.

The rate of the other tables, 0.2, stands in `two-stage/logs-shares`."""

from __future__ import annotations

from fedarena.reproduce.two_stage.authors_logs import described, experiments
from fedarena.reproduce.two_stage.common import accuracy_table

EXPERIMENTS = experiments("rates")

TABLE = accuracy_table(described("60 % label flippers, by the learning rate at ε = 2"), EXPERIMENTS)
