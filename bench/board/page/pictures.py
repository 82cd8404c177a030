"""Originals and guesses of attacks as pictures inside the web page."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path

from fedarena.board.board import Board, BoardCell
from fedarena.board.page.thumbnails import strip
from fedarena.records import store

LARGEST = 6_000_000
"""Bytes of all pictures in a page, at most; the page says how many are left out."""


@dataclass(frozen=True)
class Pictures:
    """The pictures of a page.

    Attributes:
        uris: data URIs, each once.
        by_cell: number of the cell on the board → numbers of its originals and its guesses in `uris`.
        left_out: how many cells have pictures that do not fit.
    """

    uris: tuple[str, ...]
    by_cell: dict[int, tuple[int, int]]
    left_out: int


def load_pictures(board: Board, folder: Path | None) -> Pictures:
    """The pictures of a board's cells that lie beside its records; none without a folder."""
    numbers: dict[str, int] = {}
    by_cell: dict[int, tuple[int, int]] = {}
    size = left_out = 0
    for i, c in enumerate(board.cells if folder is not None else ()):
        uris = _uris(c, folder)
        if uris is None:
            continue
        more = sum(len(uri) for uri in dict.fromkeys(uris) if uri not in numbers)
        if size + more > LARGEST:
            left_out += 1
            continue
        size += more
        originals, guesses = (numbers.setdefault(uri, len(numbers)) for uri in uris)
        by_cell[i] = (originals, guesses)
    return Pictures(tuple(numbers), by_cell, left_out)


def _uris(c: BoardCell, folder: Path | None) -> tuple[str, str] | None:
    """Data URIs of originals and guesses of the least seed that has any; None where they cannot be shown."""
    if folder is None:
        return None
    loaded = (store.load_pictures(folder, c.keys[seed]) for seed in sorted(c.keys))
    images = next((both for both in loaded if both is not None), None)
    if images is None or any(x.ndim != 4 or x.shape[1] not in (1, 3) or not len(x) for x in images):
        return None
    originals, guesses = (f"data:image/png;base64,{base64.b64encode(strip(x)).decode()}" for x in images)
    return originals, guesses
