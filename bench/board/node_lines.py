"""What a board tells of single nodes, for its defenses without a server."""

from __future__ import annotations

from collections.abc import Callable

from fedarena.board.board import Board, BySeed, CleanRun
from fedarena.board.score_text import NOTHING
from fedarena.board.threat_filter import ThreatFilter
from fedarena.core.text.numbers import Mean, level, mean
from fedarena.goals.nodes import FIGURES, OWN_MODELS

HEADS = ("defense", "problem", "mean node", *(figure.title for figure in FIGURES.values()))
"""The headings of the table."""

INTRODUCTION = (
    f"{OWN_MODELS} These are runs without poisoning. The consensus distance is the root of the nodes' mean squared "
    "distance from the mean model. Bytes are those of a round, both ways together."
)
"""What a reader of the table must know."""


def node_lines(board: Board, threats: ThreatFilter) -> list[tuple[str, ...]]:
    """A line for each clean run without a server on the problems that count, with the columns of `HEADS`."""
    measures = {p.name: p.measure for p in board.problems}
    runs = [run for run in board.clean_runs if run.nodes and threats.has_problem(run.problem)]
    return [(run.defense, run.problem, *_figures(run, measures.get(run.problem, "accuracy"))) for run in runs]


def _figures(run: CleanRun, measure: str) -> list[str]:
    def text(values: BySeed, shown: Callable[[Mean, str], str]) -> str:
        return shown(mean(list(values.values())), measure) if values else NOTHING

    return [text(run.accuracy, level), *(text(run.nodes.get(name, {}), f.text) for name, f in FIGURES.items())]
