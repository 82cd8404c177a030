"""A board as CSV: one row a cell and one a defense's honest run, with everything that the board knows of it."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

from fedarena.board.board import Board, BySeed, Cell, Honest
from fedarena.core.text.mean import mean

PLACE = ("problem", "defense", "attack", "axis", "goal", "party", "form", "knows")
TOLD = ("status", "reason", "reading", "found_by", "counts")


def to_csv(board: Board) -> str:
    """The table, RFC 4180.

    Honest runs have axis `utility` and their relative accuracy as score. `half` is the half-width of the 95 % interval
    over seeds, empty for fewer than two. Columns `score 0`, `status 0`, `key 0` … are by seed, `metric …` are means
    over seeds. Text that a spreadsheet would take for a formula begins with an apostrophe.
    """
    metrics = sorted({name for c in board.cells for name in c.metrics})
    names = [*PLACE, *TOLD, "score", "half", "seeds"]
    by_seed = [*(h.utility for h in board.honest), *(x for c in board.cells for x in (c.statuses, c.scores, c.keys))]
    seeds = sorted({*board.seeds, *(s for values in by_seed for s in values)})
    names += [f"{what} {s}" for what in ("score", "status", "key") for s in seeds]
    names += [f"metric {name}" for name in metrics]
    names += ["bytes_up", "bytes_down", "relative_seconds", "peak_bytes", "guarantees", "marks"]
    names += ["settings", "versions", "command"]
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, names, restval="", lineterminator="\r\n")
    writer.writeheader()
    for found in (*(_honest(h) for h in board.honest), *(_cell(c) for c in board.cells)):
        writer.writerow({name: _safe(value) for name, value in found.items()})
    return buffer.getvalue()


def _cell(c: Cell) -> dict[str, Any]:
    row = {name: getattr(c, name) for name in (*PLACE, *TOLD, "settings", "command")}
    row |= _scores(c.scores) | _by_seed("status", c.statuses) | _by_seed("key", c.keys)
    row |= {f"metric {name}": mean(list(values.values())).value for name, values in c.metrics.items() if values}
    return {**row, "versions": _pairs(c.versions), "marks": "; ".join(c.marks)}


def _honest(h: Honest) -> dict[str, Any]:
    row = {"problem": h.problem, "defense": h.defense, "axis": "utility", "status": h.status, "reason": h.reason}
    row |= _scores(h.utility)
    costs = ("bytes_up", "bytes_down", "relative_seconds", "peak_bytes")
    row |= {name: "" if (value := getattr(h, name)) is None else value for name in costs}
    return {**row, "guarantees": _pairs(h.guarantees), "marks": "; ".join(h.marks), "command": h.command}


def _scores(scores: BySeed) -> dict[str, Any]:
    if not scores:
        return {"seeds": 0}
    m = mean(list(scores.values()))
    return {"score": m.value, "half": "" if m.half is None else m.half, "seeds": m.seeds} | _by_seed("score", scores)


def _by_seed(what: str, values: Mapping[int, Any]) -> dict[str, Any]:
    return {f"{what} {seed}": value for seed, value in values.items()}


def _pairs(values: Mapping[str, Any]) -> str:
    return "; ".join(f"{name}={value}" for name, value in values.items())


def _safe(value: Any) -> Any:
    """A plug-in's name or an error's text must not become a formula in somebody's spreadsheet."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
