"""What each defense costs beside its lowest score."""

from __future__ import annotations

from collections.abc import Collection

from fedarena.board.board import Board
from fedarena.board.ranking import RankingRow, rank_defenses
from fedarena.board.report.report_figure import ReportFigure, as_png
from fedarena.board.report.row_panels import Panel, in_rows, without_interval
from fedarena.core.text.numbers import Mean

COSTS = ("bytes per client and round / FedAvg's", "training time / FedAvg's")
"""Titles of the costs."""


def cost_and_score(board: Board) -> list[ReportFigure]:
    """Lowest score beside bytes and time, a row for each defense; nothing where no defense has a score and a cost."""
    rows = rank_defenses(board)
    scores = {row.defense: row.lowest.value for row in rows if row.lowest.value is not None}
    costs = {title: _costs([row for row in rows if row.defense in scores], title) for title in COSTS}
    best_first = sorted(scores, key=lambda defense: -scores[defense].value)
    names = [defense for defense in best_first if any(defense in values for values in costs.values())]
    if not names:
        return []
    panels = [Panel("lowest score", {d: scores[d] for d in names})]
    panels += [Panel(title, without_interval(values), log=True, guide=1.0) for title, values in costs.items()]
    alt = " ".join(["The lowest score against cost.", *(_text(t, v, scores, names) for t, v in costs.items())])
    caption = (
        "The lowest score beside cost, the best score on top; further left is cheaper, and the grey lines are FedAvg's "
        "cost. What has a row above it whose costs lie no further right is no bargain. Bars: 95 % over seeds."
    )
    return [ReportFigure("cost", alt, caption + _left_out(rows, scores), as_png(in_rows(names, panels)))]


def _left_out(rows: list[RankingRow], scores: Collection[str]) -> str:
    """A sentence on the defenses that are not drawn; empty where all are."""
    names = [row.defense for row in rows if row.defense not in scores]
    return f" Not drawn, because they have no lowest score: {', '.join(names)}." if names else ""


def _costs(rows: list[RankingRow], title: str) -> dict[str, float]:
    """Defense → cost, of defenses whose cost was measured."""
    values = {row.defense: row.bytes if title == COSTS[0] else row.seconds for row in rows}
    return {defense: value for defense, value in values.items() if value is not None}


def _text(title: str, costs: dict[str, float], scores: dict[str, Mean], names: list[str]) -> str:
    """The numbers of a panel in words."""
    text = "; ".join(f"{d} {costs[d]:.2f} × for {scores[d].value:.2f}" for d in names if d in costs)
    return f"{title[0].upper()}{title[1:]}: {text or 'not measured'}."
