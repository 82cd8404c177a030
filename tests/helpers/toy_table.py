"""A table that takes no time, for tests of `bench reproduce`. It reads from the environment:

TOY_LOG     a file that gets a line for every part that is begun
TOY_HANGS   a part that is never done
TOY_FAILS   a part that goes wrong
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fedarena.core.errors import UserError
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress
from fedarena.reproduce.published import Published
from fedarena.reproduce.table import Row, Table
from fedarena.reproduce.tables import TABLES

NAME = "dbcl/toy"
PAPER = {"red, one": 0.50, "red, two": 0.60, "blue, three": 0.70}


@contextmanager
def alone() -> Iterator[None]:
    """The toy's table and no other; afterwards the others are there again in their order."""
    every = dict(TABLES)
    TABLES.clear()
    TABLES[NAME] = __name__
    try:
        yield
    finally:
        TABLES.clear()
        TABLES.update(every)


def rows(piece: str, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """Ours is the paper's, and half a point more for every seed."""
    with Path(os.environ["TOY_LOG"]).open("a") as log:
        log.write(f"{piece} {seed}\n")
    while piece == os.environ.get("TOY_HANGS"):
        progress(0.5, piece)
        time.sleep(0.01)
    if piece == os.environ.get("TOY_FAILS"):
        raise UserError("the toy is broken")
    return [{"toy": piece, "paper": PAPER[piece], "accuracy": PAPER[piece] + 0.005 * seed}]


TABLE = Table(
    setting="accuracy of toys",
    pieces=tuple(PAPER),
    rows=rows,
    measured=("accuracy",),
    published=tuple(Published(piece, paper=paper, column="accuracy") for piece, paper in PAPER.items()),
)
