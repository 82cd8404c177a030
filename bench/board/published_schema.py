"""The layout of `board.json`: the names of its fields, and what each may hold.

Fields of a board, a problem, a clean run and a cell have the names of the attributes in `fedarena.board.board`, except
for those in `FILE_NAMES`, which keep the names of the first published boards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedarena.board.board import STATUSES
from fedarena.contracts.goal_names import GOAL_NAMES
from fedarena.core.threat import FORMS, KNOWLEDGE, READERS
from fedarena.records.json_schema import (
    amount,
    anything,
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

LAYOUT = 2
"""The version of this layout, which the field `board` of a file holds. Boards of layout 1 have no references, and are
read as they are."""
READABLE = (1, LAYOUT)

FILE_NAMES: dict[str, dict[str, str]] = {
    "board": {"problems": "arenas", "clean_runs": "honest", "provenance": "made"},
    "arenas": {"description": "told", "reference_accuracy": "fedavg"},
    "honest": {"warnings": "marks"},
    "cells": {"other_readings": "beside", "defense_settings": "defended", "warnings": "marks"},
}
"""Attribute → name in the file, where they differ: of the board, and of the rows of its lists."""

BOARD = fields(
    {
        "suite": text,
        "title": text,
        "seeds": each(whole),
        **dict.fromkeys(("arenas", "honest", "cells"), each(anything)),
        "made": named(text),
        "notes": each(text),
    }
)
_PROBLEM = fields(
    {
        **dict.fromkeys(("name", "told", "dataset", "measure"), text),
        "chance": number,
        "fedavg": by_seed(number),
    },
    {"subset": perhaps(text), "utility": flag, "local_only": by_seed(number)},
    closed=True,
)
BY_CLIENT = ("client_mean", "client_lowest_decile")
WHERE_KNOWN = (*BY_CLIENT, "nodes")
"""Fields of a clean run that a file has only where they are not empty."""
_CLEAN_RUN = fields(
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
    {
        **dict.fromkeys(("local_only", "server_only"), by_seed(number)),
        **dict.fromkeys(BY_CLIENT, by_seed(share)),
        "nodes": named(by_seed(number)),
    },
    closed=True,
)
_CELL = fields(
    {
        **dict.fromkeys(("problem", "defense", "attack", "reason", "reading"), text),
        "party": either(*READERS),
        "form": either(*FORMS),
        "knows": either("", *KNOWLEDGE),
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
        **dict.fromkeys(("found_by", "settings", "defended", "command", "excluded"), text),
        "versions": named(whole),
        "counts": flag,
        "marks": each(text),
    },
    closed=True,
)
ROWS = {"arenas": _PROBLEM, "honest": _CLEAN_RUN, "cells": _CELL}
"""What the rows of each list of a board may hold."""

_TITLES = {
    "arenas": ("problem", ("name",)),
    "honest": ("clean run", ("problem", "defense")),
    "cells": ("cell", ("problem", "defense", "attack", "party", "form", "knows")),
}
"""What a row of each list is called, and the fields that identify it."""


def to_file_names(kind: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """A board's, problem's, clean run's or cell's fields under the names that they have in the file."""
    names = FILE_NAMES[kind]
    return {names.get(name, name): value for name, value in row.items()}


def from_file_names(kind: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields under the names of the attributes; the inverse of `to_file_names`."""
    names = {name: attribute for attribute, name in FILE_NAMES[kind].items()}
    return {names.get(name, name): value for name, value in row.items()}


def row_title(kind: str, i: int, row: Any) -> str:
    """Where a row is, for messages: "cell 3 (digits · krum · sign-flip · client)"; rows may be damaged."""
    title, names = _TITLES[kind]
    known = [row.get(name) for name in names] if isinstance(row, Mapping) else []
    words = [word for word in known if isinstance(word, str) and word]
    return f"{title} {i + 1} ({' · '.join(words)})" if words else f"{title} {i + 1}"
