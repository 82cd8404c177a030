"""How many numbers come back, and which are farthest away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import median

from fedarena.core.text.markdown import table as table_of
from fedarena.core.text.numbers import Mean, t_quantile
from fedarena.reproduce.left_out import PAPERS
from fedarena.reproduce.page.gather import Comparison, Gathered
from fedarena.reproduce.page.layout import paper_of
from fedarena.reproduce.page.verdict import APART, VERDICTS, tolerance

LEFT_OUT = "What the papers print and these pages do not have"
COMPARED = ("held", "better", "differs", "open", "no result")
"""The verdicts on numbers that can be compared and are measured."""


def counts(comparisons: Iterable[Comparison]) -> dict[str, int]:
    """Verdict → number of comparisons that have it, for all verdicts in their order."""
    tally = Counter(one.verdict for one in comparisons)
    return {verdict: tally[verdict] for verdict in VERDICTS}


def papers_of(gathered: Gathered) -> list[str]:
    """The papers that are gathered, in the order of their names."""
    return [paper for paper in PAPERS if any(paper_of(table) == paper for table in gathered.comparisons)]


@dataclass(frozen=True)
class Farthest:
    """The largest difference that has a cause, and how many others have the same."""

    comparison: Comparison
    others: int


def farthest(comparisons: Sequence[Comparison], number: int) -> list[Farthest]:
    """The largest differences in tolerances, one for each cause; what has no cause is taken together by table."""
    groups: dict[tuple[str, str], list[Comparison]] = {}
    for one in comparisons:
        if one.verdict in APART and one.difference is not None:
            groups.setdefault((one.cause, "" if one.cause else one.table), []).append(one)
    largest = [Farthest(max(own, key=_in_tolerances), len(own) - 1) for own in groups.values()]
    return sorted(largest, key=lambda one: -_in_tolerances(one.comparison))[:number]


def _in_tolerances(comparison: Comparison) -> float:
    return abs(comparison.difference or 0.0) / tolerance(comparison.published)


def scatter(comparisons: Iterable[Comparison]) -> tuple[float, int] | None:
    """The median standard deviation of one run of ours, of comparable shares with several seeds, and their number."""
    deviations = [
        one.ours.half / t_quantile(one.ours.seeds - 1) * sqrt(one.ours.seeds)
        for one in comparisons
        if one.published.share and not one.published.apart and isinstance(one.ours, Mean) and one.ours.half is not None
    ]
    return (median(deviations), len(deviations)) if deviations else None


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    return table_of(head, [[cell.replace("|", "\\|") for cell in row] for row in rows])
