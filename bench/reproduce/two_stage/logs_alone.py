"""Two-stage, the authors' logs behind Tables 4, 15 and 16: DP alone, and the rule with nobody attacking.

Under `no momentum` the workers follow the code's form for Eq. 10, which is logged apart."""

from __future__ import annotations

from fedarena.reproduce.two_stage.authors_logs import described, experiments
from fedarena.reproduce.two_stage.common import accuracy_table

EXPERIMENTS = experiments("alone")

TABLE = accuracy_table(described("without attackers"), EXPERIMENTS)
