"""A board as a leaderboard: every line and every cell as text, which markdown, terminal and web page only print.

The columns are those of `columns`. Printers choose among them and set their own headings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedarena.board import node_lines, reference_lines
from fedarena.board.advice import advice, summary
from fedarena.board.board import Board
from fedarena.board.notes import (
    curious_parties,
    has_several_problems,
    notes,
    problems_of,
    provenance_text,
    seeds_text,
    threats_text,
    unranked_lines,
)
from fedarena.board.rank_rule import rank_rule
from fedarena.board.ranking import RankingRow, Score, rank_defenses
from fedarena.board.reference_lines import ReferenceLine
from fedarena.board.score_text import HOW, average, counts, defense_name, rank, score, times, worst_case
from fedarena.board.threat_filter import ThreatFilter, threats_on
from fedarena.board.weights import Weights

AXES = ("integrity", "privacy")
"""The axes that have worst cases."""


@dataclass(frozen=True)
class ScoreText:
    """A cell of the ranking.

    Attributes:
        text: the score, cost or count.
        worst_case: of a worst-case score the cell that it comes from, of the lowest score the axis; otherwise empty.
        score: the score itself; None for costs and counts.
    """

    text: str
    worst_case: str = ""
    score: Score | None = None


@dataclass(frozen=True)
class LeaderboardRow:
    """One defense.

    Attributes:
        rank: "1", "2–4", …, or a dash for defenses without a rank.
        defense: its name, with a dagger where it has warnings.
        unranked: why it has no rank; empty where it has one.
        cells: by the keys of `columns`.
    """

    rank: str
    defense: str
    unranked: str
    cells: dict[str, ScoreText]


@dataclass(frozen=True)
class Leaderboard:
    """A board under a threat filter.

    Attributes:
        title: the title.
        threats, summary, seeds: which threats count, how much was measured, and on which seeds.
        problems: a line for each problem that counts.
        axes: the scores that count: utility, and the axes on which the filter has threats.
        parties: curious parties of the filter that have cells.
        rule: by what the defenses are ranked.
        weighted: whether that is a weighted mean, which has a column then.
        rows: the defenses in the order of their scores.
        references: what can be had without a federation; empty where it was not measured.
        nodes: the lines of `fedarena.board.node_lines`; empty where every defense has a server.
        unranked: why defenses have no rank, one line for each reason.
        advice: which defense to take.
        notes: what a reader must know about the numbers.
        how: how the scores are computed.
        provenance: what produced the records; empty where unknown.
    """

    title: str
    threats: str
    summary: str
    seeds: str
    problems: tuple[str, ...]
    axes: tuple[str, ...]
    parties: tuple[str, ...]
    rule: str
    weighted: bool
    rows: tuple[LeaderboardRow, ...]
    references: tuple[ReferenceLine, ...]
    nodes: tuple[tuple[str, ...], ...]
    unranked: tuple[str, ...]
    advice: tuple[str, ...]
    notes: tuple[str, ...]
    how: tuple[str, ...]
    provenance: str

    @property
    def attacked_axes(self) -> tuple[str, ...]:
        """The axes on which attacks count, which have worst cases."""
        return self.axes[1:]

    @property
    def beside(self) -> dict[str, tuple[str, Sequence[str], Sequence[Sequence[str]]]]:
        """The tables beside the ranking, by name: what a reader must know, headings, and lines, if any."""
        return {
            "references": (reference_lines.INTRODUCTION, reference_lines.HEADS, [r.cells for r in self.references]),
            "nodes": (node_lines.INTRODUCTION, node_lines.HEADS, self.nodes),
        }

    @property
    def deciding(self) -> tuple[str, ...]:
        """The columns by which the defenses are ranked: the lowest score, and before it the weighted mean, if any."""
        return (*(("weighted",) if self.weighted else ()), "lowest")


def render(board: Board, threats: ThreatFilter | None = None, weights: Weights | None = None) -> Leaderboard:
    """The leaderboard of a board.

    Args:
        threats: by default `threats_on(board)`.
        weights: None ranks by the lowest score.
    """
    threats = threats or threats_on(board)
    rows = rank_defenses(board, threats, weights)
    return Leaderboard(
        title=board.title or board.suite,
        threats=threats_text(threats),
        summary=summary(board, threats, rows),
        seeds=seeds_text(board),
        problems=tuple(f"{p.name}: {p.description}" for p in problems_of(board, threats)),
        axes=threats.axes,
        parties=tuple(curious_parties(board, threats)),
        rule=rank_rule(threats.axes, weights),
        weighted=weights is not None,
        rows=tuple(_row(board, row) for row in rows),
        references=tuple(reference_lines.reference_lines(board, threats)),
        nodes=tuple(node_lines.node_lines(board, threats)),
        unranked=tuple(unranked_lines(rows)),
        advice=tuple(advice(board, threats, rows, weights)),
        notes=tuple(notes(board, threats, rows)),
        how=HOW,
        provenance=provenance_text(board),
    )


def columns(parties: Sequence[str]) -> dict[str, str]:
    """Key → heading of every column after rank and defense, with a column for each of these curious parties."""
    return {
        "weighted": "weighted mean",
        **{name: name for name in ("lowest", "utility", *AXES)},
        "overall": "mean",
        **{f"paper_{axis}": f"{axis}, paper form" for axis in AXES},
        **{f"average:{axis}": f"{axis}, mean over cells" for axis in AXES},
        **{f"party:{party}": f"privacy: {party}" for party in parties},
        "bytes": "bytes / FedAvg's",
        "time": "time / FedAvg's",
        "cells": "cells",
    }


def _row(board: Board, row: RankingRow) -> LeaderboardRow:
    several = has_several_problems(board)

    def worst(s: Score) -> ScoreText:
        return ScoreText(score(s), worst_case(s, several), s)

    cells = {name: ScoreText(score(row.score(name)), score=row.score(name)) for name in ("utility", "overall")}
    cells["weighted"] = ScoreText(score(row.weighted or Score(None)), score=row.weighted or Score(None))
    cells["lowest"] = ScoreText(score(row.lowest), row.lowest_axis, row.lowest)
    for axis in AXES:
        cells[axis] = worst(row.score(axis))
        cells[f"paper_{axis}"] = worst(row.paper_score(axis))
        cells[f"average:{axis}"] = ScoreText(average(row.score(axis)))
    for party in curious_parties(board, ThreatFilter()):
        cells[f"party:{party}"] = worst(row.by_party.get(party, Score(None)))
    cells |= {"bytes": ScoreText(times(row.bytes)), "time": ScoreText(times(row.seconds))}
    return LeaderboardRow(
        rank=rank(row),
        defense=defense_name(row),
        unranked=f"no rank: {row.unranked}" if row.unranked else "",
        cells={**cells, "cells": ScoreText(counts(row.counts))},
    )
