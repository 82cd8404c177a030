"""Two-stage, the authors' logs behind Figures 1, 2, 6 to 18 and 21: from 20 to 99 % Byzantine workers.

The figures print no numbers."""

from __future__ import annotations

from fedarena.reproduce.two_stage.authors_logs import described, experiments
from fedarena.reproduce.two_stage.common import accuracy_table

EXPERIMENTS = experiments("shares")

TABLE = accuracy_table(described("by the share of Byzantine workers"), EXPERIMENTS)
