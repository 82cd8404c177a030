"""Writes and reads the published form of a board, `board.json`."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict
from pathlib import Path
from typing import Any

from fedarena.board.board import Board, BoardCell, CleanRun, ProblemInfo
from fedarena.board.published_faults import check_together
from fedarena.board.published_schema import (
    BOARD,
    BY_CLIENT,
    LAYOUT,
    READABLE,
    ROWS,
    WHERE_KNOWN,
    from_file_names,
    row_title,
    to_file_names,
)
from fedarena.core.errors import UserError
from fedarena.core.files import read_json
from fedarena.records.json_schema import brief


def to_json(board: Board) -> str:
    """The published form: one line for each problem, clean run and cell, so that a diff shows the rows that changed.

    Fields of a cell that have their default, such as an empty curve, are left out.
    """
    content = {"board": LAYOUT, **to_file_names("board", asdict(board))}
    content["cells"] = [_without_defaults(cell) for cell in content["cells"]]
    content["honest"] = [
        {name: value for name, value in run.items() if value or name not in WHERE_KNOWN} for run in content["honest"]
    ]
    for kind in ROWS:
        content[kind] = [to_file_names(kind, row) for row in content[kind]]
    return "{\n" + ",\n".join(f"{_line(name)}:{_lines(value)}" for name, value in content.items()) + "\n}\n"


def _without_defaults(cell: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in cell.items() if name not in _DEFAULTS or value != _DEFAULTS[name]}


def _defaults() -> dict[str, Any]:
    values: dict[str, Any] = {}
    for f in dataclasses.fields(BoardCell):
        if f.default is not MISSING:
            values[f.name] = f.default
        elif f.default_factory is not MISSING:
            values[f.name] = f.default_factory()
    return values


_DEFAULTS = _defaults()
"""Attribute of a cell → default."""


def _line(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _lines(value: Any) -> str:
    """A list of objects with one line each, anything else on one line."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(map(_line, value)) + "\n]"
    return _line(value)


def from_json(published: str, where: Path) -> Board:
    """The board of a published text.

    Args:
        where: the file, for messages.

    Raises:
        UserError: the text is no board; the message names the file, the row and the field.
    """
    try:
        data: Any = read_json(published)
        if not isinstance(data, Mapping) or "board" not in data:
            raise UserError(f"{where} is not a board: `bench leaderboard --format json` writes one")
        layout = data["board"]
        if type(layout) is not int or layout not in READABLE:
            allowed = ", ".join(map(str, READABLE))
            raise UserError(f"{where} is a board of layout {brief(layout)}, allowed: {allowed}; make it again")
        BOARD(data, "")
        for kind, check in ROWS.items():
            for i, row in enumerate(data[kind]):
                check(row, f"{row_title(kind, i, row)}: ")
        board = Board(
            suite=data["suite"],
            title=data["title"],
            seeds=tuple(data["seeds"]),
            problems=tuple(_problem(row) for row in data["arenas"]),
            clean_runs=tuple(_clean_run(row) for row in data["honest"]),
            cells=tuple(_cell(row) for row in data["cells"]),
            provenance=data["made"],
            notes=tuple(data["notes"]),
        )
        check_together(board)
        return board
    except ValueError as error:
        raise UserError(f"{where} is damaged: {error}") from None


def _problem(row: dict[str, Any]) -> ProblemInfo:
    by_seed = {name: _by_seed(row.get(name, {})) for name in ("fedavg", "local_only")}
    return ProblemInfo(**from_file_names("arenas", {**row, **by_seed}))


def _clean_run(row: dict[str, Any]) -> CleanRun:
    tuples = {"marks": tuple(row["marks"]), "curve": _curve(row["curve"]), "keys": tuple(row["keys"])}
    by_seed = {
        name: _by_seed(row.get(name, {})) for name in ("accuracy", "utility", "local_only", "server_only", *BY_CLIENT)
    }
    nodes = {name: _by_seed(values) for name, values in row.get("nodes", {}).items()}
    return CleanRun(**from_file_names("honest", {**row, **by_seed, "nodes": nodes, **tuples}))


def _cell(row: dict[str, Any]) -> BoardCell:
    by_seed = {name: _by_seed(row.get(name, {})) for name in ("statuses", "scores", "keys")}
    metrics = {name: _by_seed(values) for name, values in row["metrics"].items()}
    tuples = {"curve": _curve(row.get("curve", ())), "marks": tuple(row.get("marks", ()))}
    return BoardCell(**from_file_names("cells", {**row, **by_seed, "metrics": metrics, **tuples}))


def _by_seed(values: Mapping[str, Any]) -> dict[int, Any]:
    return {int(seed): value for seed, value in values.items()}


def _curve(points: Any) -> tuple[tuple[float, float], ...]:
    return tuple((x, y) for x, y in points)
