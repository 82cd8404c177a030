"""Means over many cells. They reveal a small change everywhere, such as halved noise, which shows in no single cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from fedarena.board.board import BoardCell
from fedarena.board.gate.contrast import Contrast

LEAST = 5
"""The least number of changed cells whose mean is tested."""


@dataclass(frozen=True)
class CellMean:
    """The place of a contrast of means.

    Attributes:
        of: `defense` or `attack`.
        name: its name.
        axis: the axis of the cells.
        cells: how many different cells it is over.
    """

    of: str
    name: str
    axis: str
    cells: int


def means(cells: Sequence[tuple[Contrast, BoardCell]], effect: float) -> list[Contrast]:
    """A contrast for each defense on each axis and for each attack of which at least `LEAST` cells changed.

    It is the mean over cells that changed, seed by seed, over seeds that all of them have. The cell that moved most is
    left out, since one cell that leaps must not stand for all. Cells of a group with the same scores on every seed
    count once, such as those of an attack whose adaptive form can do no more than its paper form.
    """
    groups: dict[tuple[str, str, str], dict[tuple[float, ...], Contrast]] = {}
    for contrast, cell in cells:
        if not contrast.identical:
            scores = (*contrast.seeds, *contrast.base, *contrast.new)
            for group in (("defense", cell.defense, cell.axis), ("attack", cell.attack, cell.axis)):
                groups.setdefault(group, {}).setdefault(scores, contrast)
    contrasts = [
        _mean(of, name, axis, list(members.values()), effect)
        for (of, name, axis), members in groups.items()
        if len(members) >= LEAST
    ]
    return [c for c in contrasts if len(c.seeds) > 1]


def _mean(of: str, name: str, axis: str, members: Sequence[Contrast], effect: float) -> Contrast:
    # Ties are broken by place, so that the order of cells on a board does not matter.
    all_but_largest = sorted(members, key=lambda c: (abs(c.difference), str(c.place)))[:-1]
    seeds = tuple(sorted(set.intersection(*(set(c.seeds) for c in all_but_largest))))
    rows = [(dict(zip(c.seeds, c.base, strict=True)), dict(zip(c.seeds, c.new, strict=True))) for c in all_but_largest]
    base = tuple(fmean(b[s] for b, _ in rows) for s in seeds)
    new = tuple(fmean(n[s] for _, n in rows) for s in seeds)
    return Contrast(
        place=CellMean(of, name, axis, len(all_but_largest)),
        kind=of,
        axis=of,
        seeds=seeds,
        base=base,
        new=new,
        effect=effect,
    )
