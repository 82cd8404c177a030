"""Two-stage, the authors' logs behind Table 5 and Figures 4, 19 and 22 to 38: attackers who turn late.

They copy honest uploads until round TTBB·T; at TTBB = 0 the runs are those of `two-stage/logs-shares`."""

from __future__ import annotations

from fedarena.reproduce.two_stage.authors_logs import described, experiments
from fedarena.reproduce.two_stage.common import accuracy_table

EXPERIMENTS = experiments("ttbb")

TABLE = accuracy_table(described("60 % that are honest until TTBB x T"), EXPERIMENTS)
