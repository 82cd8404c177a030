"""Many cases of a kind, and a table of how they ended."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field

from fuzz.case import Case, Ground, tried
from fuzz.judge import Fault
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import strategies as st

COLUMNS = ("cases", "0/1", "2", "traceback", "hang", "output", "outside", "nonsense")
VARIABLE = "FEDARENA_FUZZ_CASES"
CASES = 2000
LONG = 3000
"""Letters of a case, and of its output, that are shown."""


def wanted_cases() -> int:
    """How many cases of a kind a long campaign has."""
    return int(os.environ.get(VARIABLE, CASES))


@dataclass
class Found:
    """What a campaign found: the columns of its table, and of each fault the smallest case."""

    counts: Counter[str] = field(default_factory=Counter)
    smallest: dict[tuple[str, str], tuple[Case, Fault]] = field(default_factory=dict)

    def add(self, case: Case, ground: Ground) -> None:
        """Try a case."""
        faults, columns = tried(case, ground)
        self.counts += columns + Counter({"cases": 1})
        for fault in faults:
            known = self.smallest.get((fault.sort, fault.told))
            if known is None or len(repr(case)) < len(repr(known[0])):
                self.smallest[fault.sort, fault.told] = case, fault

    def row(self, kind: str) -> str:
        """A row of the table."""
        return f"| {kind} | " + " | ".join(str(self.counts[name]) for name in COLUMNS) + " |"

    def told(self) -> str:
        """Each fault with its smallest case."""
        return "\n\n".join(
            f"{sort}: {told}\n{case!r}"[:LONG] + f"\n{fault.more[-LONG:]}"
            for (sort, told), (case, fault) in self.smallest.items()
        )


def campaign(cases: st.SearchStrategy[Case], ground: Ground, count: int) -> Found:
    """Try new random cases, each time others, and go on after faults."""
    found = Found()

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
    )
    @given(cases)
    def one(case: Case) -> None:
        found.add(case, ground)

    one()
    return found
