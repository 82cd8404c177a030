"""A number that a paper prints, and the measured number of a table that it is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Literal

Better = Literal["higher", "lower", ""]

SEPARATOR = ", "
"""What stands between the words of a piece's name."""
NOT_FOUND = "cause not found"
"""What stands beside a difference that no measurement has explained."""


@dataclass(frozen=True)
class Spread:
    """How far the runs behind a published mean scatter.

    Attributes:
        deviation: the standard deviation of one run over seeds.
        seeds: the number of seeds.
    """

    deviation: float
    seeds: int


@dataclass(frozen=True)
class Cause:
    """Why ours differs, which a measurement has shown.

    Attributes:
        text: the cause in a few words.
        row: the piece in which the cause is taken away, of the same table, or "table: piece" of another one. The cause
            counts only while the number comes back there. "" where the text names what has shown it.
        contradiction: whether the row has the same run with another published number, and that number is what ours
            agrees with. The cause counts only while it does.
    """

    text: str
    row: str = ""
    contradiction: bool = False


@dataclass(frozen=True)
class Published:
    """One number of a paper.

    Attributes:
        piece: the piece of the table that measures ours.
        paper: the number, with no digits beyond `decimals`, or what the paper says in words.
        column: the column of the piece's row that holds ours.
        row: (column, value) pairs that select the row among the piece's rows; () if the piece has one row.
        decimals: the number of decimals that the paper prints.
        share: whether it is a share in [0, 1], for which the tolerance is absolute.
        better: which side of the paper's number is the better one; "" if neither is.
        within: the lowest and the highest measured number that agree with the paper's words.
        remark: what else a reader must know about our number.
        source: the place of the number, if it is not the paper itself.
        apart: why the two cannot be compared; "" if they can.
        spread: how far the paper's own runs scatter, where that is known.
        causes: why ours may differ. The first that is shown counts; without any, no cause was found.
        derived: the printed numbers from which `paper` is computed, as "322/96"; "" if the paper prints it.
        least_of: further pieces, where the paper prints the least of several means, such as that under the worst of
            several attacks. Ours is then the least of theirs and of `piece`'s. All names begin alike.
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
    spread: Spread | None = None
    causes: tuple[Cause, ...] = ()
    derived: str = ""
    least_of: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for a number with digits that are not shown, since differences refer to the number as
        shown."""
        if not isinstance(self.paper, str) and float(f"{self.paper:.{self.decimals}f}") != self.paper:
            raise ValueError(f"{self.piece}: the paper's {self.column} is {self.paper}, {self.decimals} digits shown")

    @property
    def pieces(self) -> tuple[str, ...]:
        """All pieces that measure ours."""
        return (self.piece, *self.least_of)

    @property
    def selected(self) -> str:
        """The words with which the names of all its pieces begin, by which `--only` selects them."""
        if not self.least_of:
            return self.piece
        words = zip(*(piece.split(SEPARATOR) for piece in self.pieces), strict=False)
        return SEPARATOR.join(same[0] for same in takewhile(lambda same: len(set(same)) == 1, words))

    def is_of(self, row: Mapping[str, Any]) -> bool:
        """Whether a row of the piece is the one that holds our number."""
        return all(row.get(name) == value for name, value in self.row)

    @property
    def setting(self) -> str:
        """The setting of our number in one line, without what all numbers of the table have in common."""
        return ", ".join([self.selected, *(f"{name} {value}" for name, value in self.row if name != "paper")])

    @property
    def number(self) -> str:
        """The paper's number with the digits that the paper prints, and its spread."""
        number = self.paper if isinstance(self.paper, str) else f"{self.paper:.{self.decimals}f}"
        return number if self.spread is None else f"{number} ± {self.spread.deviation:.{self.decimals}f}"

    @property
    def shown(self) -> str:
        """The number with its source or derivation."""
        notes = [self.source] if self.source else []
        notes += [f"derived: {self.derived}"] if self.derived else []
        return f"{self.number} ({'; '.join(notes)})" if notes else self.number
