"""A table that takes no time, for tests of `bench reproduce`. What it is told by the environment:

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
from typing import Any

from fedarena.core.errors import UserError
from fedarena.reproduce import TABLES
from fedarena.reproduce.place import Where
from fedarena.reproduce.published import Published

TABLE = "dbcl/toy"
SETTING = "accuracy of toys"
PIECES = ("red, one", "red, two", "blue, three")
MEASURED = ("accuracy",)
PAPER = dict(zip(PIECES, (0.50, 0.60, 0.70), strict=True))
PUBLISHED = tuple(Published(piece, paper, "accuracy") for piece, paper in PAPER.items())


@contextmanager
def alone() -> Iterator[None]:
    """The toy's table and no other; afterwards the others are there again in their order."""
    every = dict(TABLES)
    TABLES.clear()
    TABLES[TABLE] = __name__
    try:
        yield
    finally:
        TABLES.clear()
        TABLES.update(every)


def rows(piece: str, where: Where, seed: int, progress: Any) -> list[dict[str, Any]]:
    """Ours is the paper's, and half a point more for every seed."""
    with Path(os.environ["TOY_LOG"]).open("a") as log:
        log.write(f"{piece} {seed}\n")
    while piece == os.environ.get("TOY_HANGS"):
        progress(0.5, piece)
        time.sleep(0.01)
    if piece == os.environ.get("TOY_FAILS"):
        raise UserError("the toy is broken")
    return [{"toy": piece, "paper": PAPER[piece], "accuracy": PAPER[piece] + 0.005 * seed}]
