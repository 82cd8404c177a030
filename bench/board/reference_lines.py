"""The references without a federation as text, which stand beside the ranking and are never ranked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from fedarena.board.board import Board
from fedarena.board.ranking import utility_problems
from fedarena.board.references import references
from fedarena.board.score_text import NOTHING
from fedarena.board.threat_filter import ThreatFilter
from fedarena.core.text.numbers import Mean, level

HEADS = ("reference", "what it is", "accuracy", "utility", "integrity", "privacy")
"""The headings of a table of references."""

INTRODUCTION = (
    "What can be had without a federation is never ranked. It has utility 0 by definition, and privacy 1 because "
    "nothing is sent. Where nothing is learned together, poisoning has nothing to take."
)
"""What a reader of the table must know."""


@dataclass(frozen=True)
class ReferenceLine:
    """A reference as the columns of `HEADS` print it.

    Attributes:
        name: `constant`, `local-only` or `server-only`.
        title: what it is.
        accuracy: its accuracy on the problem; of several problems the mean, and each of them.
    """

    name: str
    title: str
    accuracy: str

    @property
    def cells(self) -> tuple[str, ...]:
        """The texts of all columns."""
        return (self.name, self.title, self.accuracy, "0", NOTHING, "1")


def reference_lines(board: Board, threats: ThreatFilter) -> list[ReferenceLine]:
    """The references on the problems that count as utility; none on boards that were measured without them."""
    problems = [name for name in utility_problems(board) if threats.has_problem(name)]
    measures = {p.name: p.measure for p in board.problems}
    found = references(board, problems)
    return [ReferenceLine(r.name, r.title, _accuracy(r.accuracy, measures, problems)) for r in found]


def _accuracy(by_problem: dict[str, Mean], measures: dict[str, str], problems: Sequence[str]) -> str:
    texts = {name: level(reached, measures[name]) for name, reached in by_problem.items()}
    if len(problems) == 1:
        return texts[problems[0]]
    each = ", ".join(f"{name} {text}" for name, text in texts.items())
    kinds = {measures[name] for name in by_problem}
    if len(texts) == 1 or len(kinds) > 1:  # accuracies and R² have no mean
        return each
    middle = Mean(fmean(reached.value for reached in by_problem.values()), None, 1)
    return f"{level(middle, kinds.pop())} ({each})"
