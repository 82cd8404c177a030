"""A board as a table: one row for each clean run, reference and cell, with everything that the board holds about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fedarena.board.board import Board, BoardCell, BySeed, CleanRun
from fedarena.board.references import Reference, references
from fedarena.core.text.numbers import mean
from fedarena.core.text.spreadsheet import safe_cell

if TYPE_CHECKING:
    from pandas import DataFrame

PLACE = ("problem", "defense", "attack", "axis", "goal", "party", "form", "knows")
RESULT = ("status", "reason", "reading", "found_by", "counts", "excluded")
COSTS = ("bytes_up", "bytes_down", "relative_seconds", "peak_bytes")


def to_frame(board: Board) -> DataFrame:
    """The table.

    Clean runs have axis `utility` and their utility as score. So have the references without a federation, which stand
    under their names in place of a defense's: `reference` is their status and 0 their utility by definition. `half` is
    the half-width of the 95 % interval over seeds, missing for fewer than two. Columns `score 0`, `status 0`, `key 0` …
    are by seed, columns `metric …` are means over seeds. Clean runs without a server have those of single nodes.
    """
    return _table(board).infer_objects()


def to_csv(board: Board) -> str:
    """The table as CSV, RFC 4180. Text that a spreadsheet would take for a formula begins with an apostrophe."""
    return str(_table(board).map(safe_cell).to_csv(index=False, lineterminator="\r\n"))


def _table(board: Board) -> DataFrame:
    """The table with every number as it is: a column of integers and gaps has no fractions."""
    from pandas import DataFrame

    beside = [row for r in references(board, [p.name for p in board.problems]) for row in _reference(r)]
    rows = [*(_clean_run(run) for run in board.clean_runs), *beside, *(_cell(c) for c in board.cells)]
    return DataFrame(rows, columns=_columns(board), dtype=object)


def _columns(board: Board) -> list[str]:
    of_cells = [values for c in board.cells for values in (c.statuses, c.scores, c.keys)]
    seeds = {*board.seeds, *(s for run in board.clean_runs for s in run.utility), *(s for v in of_cells for s in v)}
    metrics = sorted({name for c in board.cells for name in c.metrics} | {n for r in board.clean_runs for n in r.nodes})
    names = [*PLACE, *RESULT, "score", "half", "seeds", "accuracy"]
    names += [f"{what} {seed}" for what in ("score", "status", "key") for seed in sorted(seeds)]
    names += [f"metric {name}" for name in metrics]
    return [*names, *COSTS, "guarantees", "marks", "settings", "versions", "command"]


def _cell(c: BoardCell) -> dict[str, Any]:
    row = {name: getattr(c, name) for name in (*PLACE, *RESULT, "settings", "command")}
    row |= _scores(c.scores) | _by_seed("status", c.statuses) | _by_seed("key", c.keys)
    row |= _metrics(c.metrics)
    return {**row, "versions": _pairs(c.versions), "marks": "; ".join(c.warnings)}


def _clean_run(run: CleanRun) -> dict[str, Any]:
    row = {name: getattr(run, name) for name in ("problem", "defense", "status", "reason", "command")}
    row |= _scores(run.utility)
    row |= {"accuracy": mean(list(run.accuracy.values())).value} if run.accuracy else {}
    row |= {name: getattr(run, name) for name in COSTS} | _metrics(run.nodes)
    return {**row, "axis": "utility", "guarantees": _pairs(run.guarantees), "marks": "; ".join(run.warnings)}


def _reference(reference: Reference) -> list[dict[str, Any]]:
    """A reference on each of its problems."""
    about = {
        "defense": reference.name,
        "axis": "utility",
        "status": "reference",
        "reason": reference.title,
        "score": 0.0,
    }
    return [
        {**about, "problem": problem, "accuracy": reached.value, "seeds": reached.seeds}
        for problem, reached in reference.accuracy.items()
    ]


def _scores(scores: BySeed) -> dict[str, Any]:
    if not scores:
        return {"seeds": 0}
    m = mean(list(scores.values()))
    return {"score": m.value, "half": m.half, "seeds": m.seeds} | _by_seed("score", scores)


def _metrics(metrics: Mapping[str, BySeed]) -> dict[str, Any]:
    return {f"metric {name}": mean(list(values.values())).value for name, values in metrics.items() if values}


def _by_seed(what: str, values: Mapping[int, Any]) -> dict[str, Any]:
    return {f"{what} {seed}": value for seed, value in values.items()}


def _pairs(values: Mapping[str, Any]) -> str:
    return "; ".join(f"{name}={value}" for name, value in values.items())
