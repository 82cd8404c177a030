"""Means over many cells: what moves a little everywhere, such as noise that was halved, shows in no single cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from fedarena.board.board import Cell
from fedarena.board.gate.contrast import Contrast

LEAST = 5
"""Changed cells from which a mean is worth a test."""


@dataclass(frozen=True)
class Mean:
    """The place of a contrast of means.

    Attributes:
        of: `defense` or `attack`.
        name: its name.
        axis: of the cells.
        cells: how many different ones are in it.
    """

    of: str
    name: str
    axis: str
    cells: int


def means(cells: Sequence[tuple[Contrast, Cell]], effect: float) -> list[Contrast]:
    """A contrast for each defense on each axis and for each attack of which at least `LEAST` cells changed.

    It is the mean over cells that changed except the one that moved most, seed by seed: one cell that leaps must not
    speak for all. Nor may it by standing there twice, as where an attack in adaptive form can do no more than in paper
    form: cells of a group with the same scores on every seed are one. Over seeds that all these cells have.
    """
    groups: dict[tuple[str, str, str], dict[tuple[float, ...], Contrast]] = {}
    for contrast, cell in cells:
        if not contrast.identical:
            scores = (*contrast.seeds, *contrast.base, *contrast.new)
            for where in (("defense", cell.defense, cell.axis), ("attack", cell.attack, cell.axis)):
                groups.setdefault(where, {}).setdefault(scores, contrast)
    found = [_mean(*where, list(each.values()), effect) for where, each in groups.items() if len(each) >= LEAST]
    return [c for c in found if len(c.seeds) > 1]


def _mean(of: str, name: str, axis: str, members: Sequence[Contrast], effect: float) -> Contrast:
    # Ties are broken by place, so that the order of cells on a board does not matter.
    kept = sorted(members, key=lambda c: (abs(c.difference), str(c.place)))[:-1]
    seeds = tuple(sorted(set.intersection(*(set(c.seeds) for c in kept))))
    rows = [(dict(zip(c.seeds, c.base, strict=True)), dict(zip(c.seeds, c.new, strict=True))) for c in kept]
    base = tuple(fmean(b[s] for b, _ in rows) for s in seeds)
    new = tuple(fmean(n[s] for _, n in rows) for s in seeds)
    return Contrast(Mean(of, name, axis, len(kept)), of, of, seeds, base, new, effect)
