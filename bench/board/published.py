"""The published form of a board, `board.json`: a line for each problem, honest run and cell, and how it is read."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import MISSING, asdict
from pathlib import Path
from typing import Any

from fedarena.board.board import STATUSES, Arena, Board, Cell, Honest, overall
from fedarena.contracts.goal_names import GOAL_NAMES
from fedarena.core.errors import UserError
from fedarena.core.files import read_json
from fedarena.records.json_schema import (
    amount,
    anything,
    brief,
    by_seed,
    each,
    either,
    fields,
    flag,
    named,
    number,
    pair,
    perhaps,
    share,
    text,
    whole,
)

SCHEMA = 1


def to_json(board: Board) -> str:
    """The published form: a line for each problem, honest run and cell, so that a change shows as the lines that it
    touches. What a cell does not have, such as a curve, is left out."""
    told: dict[str, Any] = {"board": SCHEMA, **asdict(board)}
    told["cells"] = [_brief(cell) for cell in told["cells"]]
    return "{\n" + ",\n".join(f"{_line(name)}:{_lines(value)}" for name, value in told.items()) + "\n}\n"


def _brief(cell: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in cell.items() if name not in _USUAL or value != _USUAL[name]}


def _usual() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for f in dataclasses.fields(Cell):
        if f.default is not MISSING:
            found[f.name] = f.default
        elif f.default_factory is not MISSING:
            found[f.name] = f.default_factory()
    return found


_USUAL = _usual()
"""What a cell has where nothing is said."""


def _line(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _lines(value: Any) -> str:
    """A list of tables with a line each, anything else in one."""
    if isinstance(value, list | tuple) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(map(_line, value)) + "\n]"
    return _line(value)


def from_json(published: str, where: Path) -> Board:
    """A published board. Raises UserError for what is none, naming the file, the place in it and the field."""
    try:
        data: Any = read_json(published)
        if not isinstance(data, Mapping) or "board" not in data:
            raise UserError(f"{where} is not a board: `bench leaderboard --format json` writes one")
        layout = data["board"]
        if type(layout) is not int or layout != SCHEMA:
            raise UserError(f"{where} is a board of layout {brief(layout)}, allowed: {SCHEMA}; make it anew")
        _FILE(data, "")
        for name, check in (("arenas", _ARENA), ("honest", _HONEST), ("cells", _CELL)):
            for i, one in enumerate(data[name]):
                check(one, f"{_place(name, i, one)}: ")
        board = Board(
            data["suite"],
            data["title"],
            tuple(data["seeds"]),
            tuple(Arena(**{**a, "fedavg": _by_seed(a["fedavg"])}) for a in data["arenas"]),
            tuple(_honest(h) for h in data["honest"]),
            tuple(_cell(c) for c in data["cells"]),
            data["made"],
            tuple(data["notes"]),
        )
        _check(board)
        return board
    except ValueError as error:
        raise UserError(f"{where} is damaged: {error}") from None


_FILE = fields(
    {
        "suite": text,
        "title": text,
        "seeds": each(whole),
        **dict.fromkeys(("arenas", "honest", "cells"), each(anything)),
        "made": named(text),
        "notes": each(text),
    }
)
_ARENA = fields(
    {
        **dict.fromkeys(("name", "told", "dataset", "measure"), text),
        "chance": number,
        "fedavg": by_seed(number),
    },
    {"subset": perhaps(text), "utility": flag},
    closed=True,
)
_HONEST = fields(
    {
        **dict.fromkeys(("problem", "defense", "reason", "command"), text),
        "status": either(*STATUSES),
        "accuracy": by_seed(number),
        "utility": by_seed(share),
        **dict.fromkeys(("bytes_up", "bytes_down", "peak_bytes"), amount),
        "relative_seconds": perhaps(amount),
        "guarantees": named(number),
        "marks": each(text),
        "curve": each(pair),
        "keys": each(text),
    },
    closed=True,
)
_CELL = fields(
    {
        **dict.fromkeys(("problem", "defense", "attack", "party", "form", "knows", "reason", "reading"), text),
        "axis": either("privacy", "integrity"),
        "goal": either("", *GOAL_NAMES),
        "status": either(*STATUSES),
        "statuses": by_seed(either(*STATUSES)),
        "scores": by_seed(share),
        "metrics": named(by_seed(number)),
    },
    {
        "curve": each(pair),
        "series": named(each(pair)),
        "keys": by_seed(text),
        "beside": named(share),
        **dict.fromkeys(("found_by", "settings", "defended", "command"), text),
        "versions": named(whole),
        "counts": flag,
        "marks": each(text),
    },
    closed=True,
)


def _place(name: str, i: int, one: Any) -> str:
    """Where a field is, in words, be the other fields what they may: "cell digits · krum · sign-flip · client"."""
    what, parts = _NAMED[name]
    known = [one.get(part) for part in parts] if isinstance(one, Mapping) else []
    told = [word for word in known if isinstance(word, str) and word]
    return f"{what} {i + 1} ({' · '.join(told)})" if told else f"{what} {i + 1}"


_NAMED = {
    "arenas": ("problem", ("name",)),
    "honest": ("honest run", ("problem", "defense")),
    "cells": ("cell", ("problem", "defense", "attack", "party", "form", "knows")),
}
"""What the rows of a list are called, and by which fields one is told from the others."""


def _check(board: Board) -> None:
    """Raise ValueError for fields that are each as they should be, and together what no run gives."""
    faults: list[tuple[str, int, Cell | Honest, str]] = [
        *(("cells", i, c, _cell_fault(c)) for i, c in enumerate(board.cells)),
        *(("honest", i, h, _honest_fault(h)) for i, h in enumerate(board.honest)),
    ]
    there = {s for c in board.cells for s in c.statuses} | {s for h in board.honest for s in h.accuracy}
    if again := [seed for seed, count in Counter(board.seeds).items() if count > 1]:
        raise ValueError(f"seeds has {again[0]} twice")
    if strange := sorted(set(board.seeds) ^ there) if board.cells else []:
        where = "is in no cell" if strange[0] in board.seeds else "is in cells, and not there"
        told = ", ".join(map(str, board.seeds)) or "none"
        raise ValueError(f"seeds is {told}: seed {strange[0]} {where}")
    arenas = {a.name for a in board.arenas}
    for name, i, one, why in faults:
        if one.problem not in arenas:
            why = f"problem is {brief(one.problem)}, which is not among the board's arenas"
        if why:
            raise ValueError(f"{_place(name, i, vars(one))}: {why}")
    places = Counter(
        [
            *((a.name,) for a in board.arenas),
            *(c.place for c in board.cells),
            *((h.problem, h.defense) for h in board.honest),
        ]
    )
    if twice := [place for place, count in places.items() if count > 1]:
        raise ValueError(f"{' · '.join(filter(None, twice[0]))} is there twice")


def _cell_fault(c: Cell) -> str:
    """What of a cell cannot be; empty where all can."""
    together = overall(c.statuses.values())
    if c.status != together:
        return f"status is {brief(c.status)}, and of its seeds it is {brief(together)} (statuses)"
    # What corrupted clients do is poisoning, and what they know is told of that alone.
    axis = "integrity" if c.knows else "privacy"
    if c.axis != axis:
        return f"axis is {brief(c.axis)}, and of one with knows {brief(c.knows)} it is {brief(axis)}"
    if bool(c.goal) != (axis == "privacy"):
        return f"goal is {brief(c.goal)}, which no cell of axis {axis} has"
    for seed in c.scores:
        if c.statuses.get(seed, "missing") in ("n/a", "failed", "missing"):
            return f"scores has seed {seed}, which is {c.statuses.get(seed, 'missing')} (statuses)"
    return ""


def _honest_fault(h: Honest) -> str:
    """What of an honest run cannot be; empty where all can."""
    if h.status in ("ok", "diverged") and not h.accuracy:
        return f"status is {brief(h.status)}, and accuracy has no seed"
    if lacking := [seed for seed in h.utility if seed not in h.accuracy]:
        return f"utility has seed {lacking[0]}, which accuracy has not"
    return ""


def _by_seed(found: Mapping[str, Any]) -> dict[int, Any]:
    return {int(seed): value for seed, value in found.items()}


def _curve(points: Any) -> tuple[tuple[float, float], ...]:
    return tuple((x, y) for x, y in points)


def _honest(h: dict[str, Any]) -> Honest:
    seeds = {name: _by_seed(h[name]) for name in ("accuracy", "utility")}
    return Honest(**{**h, **seeds, "marks": tuple(h["marks"]), "curve": _curve(h["curve"]), "keys": tuple(h["keys"])})


def _cell(c: dict[str, Any]) -> Cell:
    seeds = {name: _by_seed(c.get(name, {})) for name in ("statuses", "scores", "keys")}
    metrics = {name: _by_seed(values) for name, values in c["metrics"].items()}
    more = {"curve": _curve(c.get("curve", ())), "marks": tuple(c.get("marks", ()))}
    return Cell(**{**c, **seeds, "metrics": metrics, **more})
