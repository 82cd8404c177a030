"""A board as pages of markdown: what it is, what it shows, what it leaves open; each goal's cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedarena.board.advice import advice
from fedarena.board.board import Board, ProblemInfo
from fedarena.board.leaderboard import render
from fedarena.board.markdown import ranking
from fedarena.board.notes import provenance_text, seeds_text
from fedarena.board.ranking import rank_defenses
from fedarena.board.recommendation import beats_baseline
from fedarena.board.report.attack_tables import attack_tables, goals_of
from fedarena.board.report.clean_run_table import clean_run_table
from fedarena.board.report.method_cards import method_cards
from fedarena.board.report.missing_results import could_not_start, limits, without_result
from fedarena.board.report.report_figure import ReportFigure
from fedarena.board.score_text import DAGGER, HOW
from fedarena.board.threat_filter import ThreatFilter
from fedarena.core.text.markdown import code, escape, folded, items
from fedarena.core.text.numbers import MEASURES, level, mean
from fedarena.core.threat import KNOWLEDGE

COMMON_THREATS: dict[str, ThreatFilter] = {
    "malicious clients, curious server": ThreatFilter(parties=("server",)),
    "malicious clients, no curious party": ThreatFilter(parties=()),
    "curious server, honest clients": ThreatFilter(parties=("server",), knows=()),
    "curious client, the others honest": ThreatFilter(parties=("client",), knows=()),
    "eavesdropper on the wire": ThreatFilter(parties=("eavesdropper",), knows=()),
    "user of the finished model": ThreatFilter(parties=("outsider",), knows=()),
}
"""Threats that readers often have, in addition to all threats at once."""

FIGURES = {
    "scores": ("Scores by defense and attack", "No cells, so there is no map of scores."),
    "rounds": ("Accuracy under attack by round", "No poisoned run has a curve, so none is drawn."),
    "reconstructions": (
        "Originals and reconstructions",
        "No pictures are kept beside these records, so none are shown.",
    ),
    "roc": ("ROC curves", "No record holds the curve of an attack that ranks, so none is drawn."),
    "epsilon": ("Privacy against ε", "No protocol here promises an ε and has a privacy score, so none is drawn."),
    "cost": (
        "Cost against score",
        "No defense has both a cost beside FedAvg's and a lowest score, so none is drawn.",
    ),
}
"""Figures in order: heading, and the sentence where there is nothing to draw."""


FRONT = "README.md"


def pages(board: Board, figures: Mapping[str, Sequence[ReportFigure]], commands: Sequence[str]) -> dict[str, str]:
    """The pages, by file name: the front page, and one for each goal with its cells.

    Args:
        figures: by the names of `FIGURES`.
        commands: the commands that make the records and the report; the last one makes the report.
    """
    command_text = f"Made by `{commands[-1]}`."
    parts = [
        f"# Report: {escape(board.title or board.suite)}",
        _heading(board),
        "## Which defense to take",
        _advice(board),
        "## Ranking",
        ranking(render(board)).rstrip(),
        command_text,
        "## Clean runs",
        clean_run_table(board),
        command_text,
    ]
    for name, (title, nothing) in FIGURES.items():
        parts += [f"## {title}", *([_figure(figure, command_text) for figure in figures[name]] or [nothing])]
    front = "\n\n".join([*parts, *_cells_and_limits(board), *_sources(board, commands)]) + "\n"
    cells = {cells_page(goal): _cells(board, goal, attacks, command_text) for goal, attacks in goals_of(board).items()}
    return {FRONT: front} | cells


def cells_page(goal: str) -> str:
    """The file of a goal's cells."""
    return f"cells-{goal}.md"


def _cells(board: Board, goal: str, attacks: Sequence[str], command_text: str) -> str:
    """The page of a goal: its cells, attack by attack."""
    parts = [
        f"# Cells of {goal}: {escape(board.title or board.suite)}",
        "Scores are means over seeds with their 95 % interval (Student's t, cut to [0, 1] and then given by its ends). "
        f"{DAGGER}: the runs have a warning, which is among the limits on the [front page]({FRONT}).",
        attack_tables(board, attacks),
        command_text,
    ]
    return "\n\n".join(parts) + "\n"


def _cells_and_limits(board: Board) -> list[str]:
    """Where every cell is, what has no result, and what the numbers mean."""
    by_goal = [
        f"[{goal}]({cells_page(goal)}): {', '.join(map(escape, attacks))}" for goal, attacks in goals_of(board).items()
    ]
    return [
        "## Every cell",
        items(by_goal) or "No cells: nothing was attacked.",
        "## What is missing or failed",
        without_result(board),
        "## Attacks that could not start",
        "An attack that has nothing to start from is n/a, which counts as withstood.",
        could_not_start(board),
        "## How the scores are made",
        *HOW,
        "## Limits of this report",
        items([escape(line) for line in limits(board)]),
    ]


def _sources(board: Board, commands: Sequence[str]) -> list[str]:
    """The methods with their papers, and how the report is made."""
    return [
        "## Methods and sources",
        method_cards(board),
        "## How this report is made",
        code(commands),
        "The commands of single cells stand below their tables. "
        "All numbers come from [board.json](board.json), which holds every cell with its scores by seed, the keys of "
        "its records and its command; the same records give the same report, byte for byte.",
    ]


def _heading(board: Board) -> str:
    parts = [
        "Defenses of federated learning against attacks, each limited to what it would really see. Scores are in "
        "[0, 1], higher is better for the defender.",
        items([_problem(p) for p in board.problems] or ["No problem: there are no records."]),
        f"Seeds: {seeds_text(board)}.",
    ]
    if provenance := provenance_text(board):
        parts.append(f"Made from records of {escape(provenance)}.")
    if board.notes:
        parts.append("Know first:\n\n" + items([escape(note) for note in board.notes]))
    return "\n\n".join(parts)


def _problem(problem: ProblemInfo) -> str:
    """A problem, what FedAvg reaches on it, and what a constant prediction reaches."""
    values, measure = list(problem.reference_accuracy.values()), MEASURES[problem.measure]
    reached = f"FedAvg's {measure} {level(mean(values), problem.measure)}" if values else "FedAvg has no result"
    if problem.measure == "R2":
        chance = f"a constant prediction's {problem.chance:.2f}"
    else:
        chance = f"a constant prediction has {100 * problem.chance:.0f} %"
    subset = f"; a subset of the data: {escape(problem.subset)}" if problem.subset else ""
    subset += "" if problem.utility else "; accuracy on it does not count as utility"
    return f"**{escape(problem.name)}**: {escape(problem.description)}; {reached}, {chance}{subset}"


def _advice(board: Board) -> str:
    """The advice for all threats, and folded for each of the common ones that an attack on the board poses."""
    parts = ["\n\n".join(escape(sentence) for sentence in advice(board))]
    unposed: list[str] = []
    for who, threats in COMMON_THREATS.items():
        if any(threats.counts(c) for c in board.cells):
            parts.append(_advice_for(board, who, threats))
        else:
            unposed.append(who)
    if unposed and board.cells:
        parts.append(f"No attack on this board is that of: {'; '.join(unposed)}.")
    return "\n\n".join(parts)


def _advice_for(board: Board, who: str, threats: ThreatFilter) -> str:
    rows = rank_defenses(board, threats)
    first = next((row.defense for row in rows if row.rank is not None), "none can be recommended")
    if rows and rows[0].rank is not None and not beats_baseline(board, rows, threats):
        first = "no defense scores above none"
    sentences = [escape(sentence) for sentence in advice(board, threats, rows)]
    # Naming all kinds of knowledge but the least names that one, too (`read_threat_filter`).
    knows = KNOWLEDGE[1:] if threats.knows == KNOWLEDGE else threats.knows
    option = f"On a leaderboard: `--threats {','.join((*threats.parties, *knows))}`."
    return folded(f"{who[0].upper()}{who[1:]}: {first}", "\n\n".join([*sentences, option]))


def _figure(figure: ReportFigure, command_text: str) -> str:
    return f"![{escape(figure.alt)}]({figure.path})\n\n{escape(figure.caption)} {command_text}"
