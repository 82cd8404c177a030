"""The board as JSON for the page's script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, combinations
from statistics import fmean
from typing import Any

from fedarena.board.advice import advice
from fedarena.board.board import STATUSES, Board, BoardCell, BySeed, CleanRun
from fedarena.board.node_lines import node_lines
from fedarena.board.page.outcome import outcome
from fedarena.board.page.pictures import Pictures
from fedarena.board.ranking import utility_problems
from fedarena.board.reference_lines import reference_lines
from fedarena.board.references import floors_of, without_gain
from fedarena.board.threat_filter import ThreatFilter
from fedarena.board.weights import Weights
from fedarena.core.text.numbers import t_quantile
from fedarena.core.threat import EVERYONE, KNOWLEDGE, Knowledge


def board_data(board: Board, pictures: Pictures, weights: Weights | None) -> dict[str, Any]:
    """Everything that the page's script reads.

    Args:
        weights: those with which the page begins, and for which its advice is.
    """
    sentences, advice_by_threats = _advice_by_threats(board, weights)
    most = max([2, *(len(c.scores) for c in board.cells), *(len(run.accuracy) for run in board.clean_runs)])
    choices = [ThreatFilter(problems=(name,) if name else ()) for name in problem_choices(board)]
    return {
        "everyone": EVERYONE,
        "statuses": STATUSES,
        "defenses": board.defenses,
        "problems": problem_choices(board),
        "arenas": [{n: getattr(p, n) for n in ("name", "measure", "chance")} for p in board.problems],
        "useful": utility_problems(board),
        "honest": [_clean_run(board, run) for run in board.clean_runs],
        "cells": [_cell(board, c, pictures.by_cell.get(i)) for i, c in enumerate(board.cells)],
        "pictures": pictures.uris,
        "sentences": sentences,
        "cuts": advice_by_threats,
        "weights": weights,
        # Name of a table, problem choice → its lines.
        "beside": {
            "references": [[line.cells for line in reference_lines(board, chosen)] for chosen in choices],
            "nodes": [node_lines(board, chosen) for chosen in choices],
        },
        # Problem choice, defense → why it is not worth a federation.
        "without_gain": [
            [without_gain(board, defense, chosen) for defense in board.defenses]
            for chosen in ([n for n in utility_problems(board) if name in ("", n)] for name in problem_choices(board))
        ],
        # Student's quantiles by degrees of freedom, from 1; the first entry is unused.
        "t": [0.0, *(t_quantile(n) for n in range(1, most))],
        # The same for so many intervals that hold together.
        "t_together": [
            [0.0, *(t_quantile(n, max(k, 1)) for n in range(1, most))] for k in range(_most_cells(board) + 1)
        ],
    }


def _most_cells(board: Board) -> int:
    """How many lists of scores a lowest mean is taken over at most: all cells of a defense, and its utility."""
    return 1 + max(Counter(c.defense for c in board.cells).values(), default=0)


def problem_choices(board: Board) -> list[str]:
    """The problems that a reader can choose; "" is all of them."""
    names = dict.fromkeys([*(p.name for p in board.problems), *(run.problem for run in board.clean_runs)])
    return ["", *dict.fromkeys([*names, *(c.problem for c in board.cells)])]


def _clean_run(board: Board, run: CleanRun) -> dict[str, Any]:
    problem = next((p for p in board.problems if p.name == run.problem), None)
    floors = floors_of(problem, run) if problem else {}
    names = ("problem", "defense", "status", "reason", "bytes_up", "bytes_down", "relative_seconds", "peak_bytes")
    return {
        **{name: getattr(run, name) for name in names},
        "marks": run.warnings,
        "keys": run.keys,
        "command": run.command,
        "accuracy": _pairs(run.accuracy),
        "utility": _pairs(run.utility),
        "curve": _points(run.curve),
        # b of the least seed, whose curves are drawn.
        "without_federation": _rounded(floors[min(floors)]) if floors else None,
        "guarantees": list(run.guarantees.items()),
    }


def _cell(board: Board, c: BoardCell, picture: tuple[int, int] | None) -> dict[str, Any]:
    names = ("problem", "defense", "attack", "axis", "goal", "party", "form", "knows", "threat", "status", "reason")
    more = ("reading", "found_by", "settings", "command", "counts", "excluded")
    return {
        **{name: getattr(c, name) for name in (*names, *more)},
        "marks": c.warnings,
        "statuses": _pairs(c.statuses),
        "scores": _pairs(c.scores),
        "keys": _pairs(c.keys),
        "mean": fmean(c.scores.values()) if c.scores else None,
        "metrics": [
            (name, [(seed, _rounded(value)) for seed, value in _pairs(values)]) for name, values in c.metrics.items()
        ],
        "beside": list(c.other_readings.items()),
        "versions": list(c.versions.items()),
        "curve": _points(c.curve),
        "series": [(name, _points(points)) for name, points in c.series.items() if points],
        "told": outcome(c, board),
        "picture": picture,
    }


def _pairs(values: Mapping[int, Any] | BySeed) -> list[tuple[int, Any]]:
    return sorted(values.items())


def _points(points: Sequence[Sequence[float]]) -> list[tuple[float, float]]:
    return [(_rounded(x), _rounded(y)) for x, y in points]


def _rounded(x: float) -> float:
    """Four digits, which suffice for what is drawn or shown and not computed with."""
    return float(f"{x:.4g}")


def _advice_by_threats(board: Board, weights: Weights | None) -> tuple[list[str], dict[str, list[int]]]:
    """Every sentence of advice once, and the numbers of the sentences for every choice that the page offers."""
    numbers: dict[str, int] = {}
    by_threats: dict[str, list[int]] = {}
    names = problem_choices(board)
    offered = levels_of(board)
    # With a single problem, the choice "all" is that problem.
    single = len(names) == 2
    for parties in _subsets(EVERYONE):
        for levels in _subsets(offered):
            # All that the page offers is all that there is.
            knows = KNOWLEDGE if levels == offered else levels
            for i, problem in enumerate(names[:1] if single else names):
                threats = ThreatFilter(parties, knows, (problem,) if problem else ())
                sentences = [numbers.setdefault(text, len(numbers)) for text in advice(board, threats, None, weights)]
                for k in (0, 1) if single else (i,):
                    by_threats[f"{','.join(parties)}|{','.join(levels)}|{k}"] = sentences
    return list(numbers), by_threats


def levels_of(board: Board) -> tuple[Knowledge, ...]:
    """The knowledge of corrupted clients that the page offers; `none` only where an attack on the board has it."""
    least = KNOWLEDGE[0]
    return KNOWLEDGE if any(c.knows == least for c in board.cells) else KNOWLEDGE[1:]


def _subsets(names: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
    return chain.from_iterable(combinations(names, n) for n in range(len(names) + 1))
