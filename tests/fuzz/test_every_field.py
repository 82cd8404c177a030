"""Every field of a board, a plan and a record, missing or of another type: it is refused, or what reads it can do so.

Random cases damage a field now and then; here each has its turn, without a command where it is refused.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fuzz.case import BOARD, RESULTS, Case, Ground, tried
from fuzz.changes import Change, alike, other_type, paths
from fuzz.results import FREE, ChangedBoard, ChangedResults, sign

from fedarena.board.doubtful_record import doubt
from fedarena.board.load import load_board
from fedarena.core.errors import UserError
from fedarena.records.store import read_record
from fedarena.runs.suite.plan import read_plan

VALUES = (1, "odd", True, ["odd"], {"odd": 1})
"""One of each type of JSON."""
WHOLE = (("leaderboard", "--out", "made.html"), ("report",))
Reads = Callable[[Any, Path], bool]


def reads_board(document: Any, folder: Path) -> bool:
    (folder / BOARD).write_text(json.dumps(document))
    try:
        load_board(folder / BOARD)
    except UserError:
        return False
    return True


def reads_plan(document: Any, folder: Path) -> bool:
    (folder / "plan.json").write_text(json.dumps(document))
    return read_plan(folder) is not None


def reads_record(document: Any, folder: Path) -> bool:
    """Whether a record is read whose keys and sum fit it."""
    key = sign(document, "")
    try:
        return read_record(json.dumps(document).encode(), key, doubt) is not None
    except ValueError:
        return False


def damaged(document: Any) -> Iterator[Change]:
    """Changes of one place of each field: it is missing, or holds a value of another type."""
    for path, *_ in alike(path for path in paths(document) if path):
        puts = [Change(path, "put", value) for value in VALUES]
        yield Change(path, "drop")
        yield from (put for put in puts if other_type(document, put.apply(copy.deepcopy(document)), FREE))


def accepted(document: Any, reads: Reads, folder: Path) -> list[Change]:
    """The changes after which a document is read."""
    return [change for change in damaged(document) if reads(change.apply(copy.deepcopy(document)), folder)]


def cases(file: str, changes: tuple[Change, ...]) -> list[Case]:
    """Commands that read all of a file."""
    commands = [(name, BOARD if file == BOARD else RESULTS, *words) for name, *words in WHOLE]
    if file == BOARD:
        return [ChangedBoard(argv, changes=changes) for argv in commands]
    signed = file.startswith("records/")
    return [ChangedResults(argv, file=file, changes=changes, signed=signed, loose=signed) for argv in commands]


def records_of(ground: Ground) -> list[str]:
    """A record of each goal and each attack."""
    files = sorted((ground.folder / RESULTS / "records").glob("*.json"))
    one = {(record["goal"], record["attack"]): path for path in files if (record := json.loads(path.read_text()))}
    return [f"records/{path.name}" for path in one.values()]


@pytest.mark.parametrize("kind", ["board", "plan", "record"])
def test_every_field_is_checked_or_may_be_missing(kind: str, ground: Ground, tmp_path: Path) -> None:
    reads: Reads = {"board": reads_board, "plan": reads_plan, "record": reads_record}[kind]
    told = []
    for file in {"board": [BOARD], "plan": ["plan.json"], "record": records_of(ground)}[kind]:
        document = json.loads((ground.folder / ("" if file == BOARD else RESULTS) / file).read_text())
        fine = accepted(document, reads, tmp_path)
        told += [f"accepted: {change}" for change in fine if change.how == "put"]
        lacking = tuple(change for change in fine if change.how == "drop" and isinstance(change.path[-1], str))
        told += [f"{fault.told}: {case}" for case in cases(file, lacking) for fault in tried(case, ground)[0]]
    assert not told, "\n".join(told)
