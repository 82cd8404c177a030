"""A number that a paper prints, and which measured number of a table stands beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Better = Literal["higher", "lower", ""]


@dataclass(frozen=True)
class Published:
    """One number of a paper.

    Attributes:
        piece: of the table's `PIECES`, the one that measures ours.
        paper: the number, no digits beyond `decimals`, or what the paper says in words.
        column: of the piece's row, which holds ours.
        row: (column, value) pairs by which the row is found among the piece's; () where it has one.
        decimals: digits after the point that the paper prints.
        share: whether it is a share in [0, 1], of which a percentage point means the same everywhere.
        better: which side of the paper's number is the better one; "" where neither is.
        within: lowest and highest of ours that agree with the paper's words.
        remark: what else is to be known of ours.
        source: where the number stands, where that is not the paper itself.
        apart: why the two cannot be held against each other; "" where they can.
        derived: from which printed numbers `paper` is worked out, as "322/96"; "" where the paper prints it.
    """

    piece: str
    paper: float | str
    column: str
    row: tuple[tuple[str, Any], ...] = ()
    decimals: int = 2
    share: bool = True
    better: Better = "higher"
    within: tuple[float, float] | None = None
    remark: str = ""
    source: str = ""
    apart: str = ""
    derived: str = ""

    def __post_init__(self) -> None:
        """Raises ValueError for a number with digits that are not shown: what is subtracted is what stands there."""
        if not isinstance(self.paper, str) and float(f"{self.paper:.{self.decimals}f}") != self.paper:
            raise ValueError(f"{self.piece}: the paper's {self.column} is {self.paper}, {self.decimals} digits shown")

    def is_of(self, row: Mapping[str, Any]) -> bool:
        """Whether a row of the piece is the one."""
        return all(row.get(name) == value for name, value in self.row)

    @property
    def setting(self) -> str:
        """What ours was measured on, in one line; what all numbers of the table share is left out."""
        return ", ".join([self.piece, *(f"{name} {value}" for name, value in self.row if name != "paper")])

    @property
    def shown(self) -> str:
        """The paper's number, with the digits that the paper prints, and where it stands or what it is made of."""
        number = self.paper if isinstance(self.paper, str) else f"{self.paper:.{self.decimals}f}"
        notes = [self.source] if self.source else []
        notes += [f"derived: {self.derived}"] if self.derived else []
        return f"{number} ({'; '.join(notes)})" if notes else number
