"""Boards in Python: load one, rank its defenses, compare two."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedarena.api.arguments import parsed_args, path_of, told_in_python
from fedarena.core.short_repr import ShortRepr

if TYPE_CHECKING:
    from pandas import DataFrame

    from fedarena.board.board import Board
    from fedarena.board.gate.comparison import Comparison
    from fedarena.board.leaderboard import LeaderboardRow
    from fedarena.board.ranking import Score


@dataclass(frozen=True, repr=False)
class Leaderboard(ShortRepr):
    """A board: the scores of defenses against attacks, over seeds."""

    board: Board

    def to_frame(self) -> DataFrame:
        """One row for each clean run, reference and cell. See `fedarena.board.frame.to_frame`."""
        from fedarena.board.frame import to_frame

        return to_frame(self.board)

    def ranking(self, **options: Any) -> DataFrame:
        """The defenses in their order, as `bench leaderboard` ranks them, with each score and its 95 % interval.

        Args:
            options: those of `bench leaderboard` that choose: threats="own,server", problem, weights.

        Raises:
            UserError: an option that is not allowed.
        """
        from pandas import DataFrame

        from fedarena.board.leaderboard import AXES

        names = (*(("weighted",) if options.get("weights") else ()), "lowest", "utility", *AXES, "overall")
        return DataFrame(
            [
                {"rank": row.rank, "defense": row.defense, "unranked": row.unranked}
                | {key: value for name in names for key, value in _with_ends(name, row.cells[name].score).items()}
                for row in self._rows(options)
            ]
        )

    @told_in_python()
    def _rows(self, options: dict[str, Any]) -> tuple[LeaderboardRow, ...]:
        from fedarena.board.leaderboard import render
        from fedarena.cli.leaderboard import chosen

        return render(self.board, *chosen(parsed_args("leaderboard", [], options), self.board)).rows

    def _repr_html_(self) -> str:
        from pandas import DataFrame

        names = ("lowest", "utility", "integrity", "privacy")
        rows = [
            {"rank": row.rank, "defense": row.defense} | {name: row.cells[name].text for name in names}
            for row in self._rows({})
        ]
        return str(DataFrame(rows).to_html(index=False))


def _with_ends(name: str, score: Score | None) -> dict[str, float | None]:
    """A score and the ends of its interval, cut to [0, 1], as columns; None where there is none."""
    value = None if score is None else score.value
    low, high = (None, None) if value is None or value.interval is None else value.interval
    return {
        name: None if value is None else value.value,
        f"{name}_low": None if low is None else max(0.0, low),
        f"{name}_high": None if high is None else min(1.0, high),
    }


@dataclass(frozen=True, repr=False)
class Difference(ShortRepr):
    """What became of a board's scores on another board (`bench compare`)."""

    comparison: Comparison

    @property
    def passed(self) -> bool:
        """Whether the gate is passed: there are no findings."""
        return not self.comparison.findings

    @property
    def verdict(self) -> str:
        """One line: whether the gate is passed, and what was found."""
        from fedarena.board.gate.wording import verdict

        return verdict(self.comparison)

    def to_frame(self) -> DataFrame:
        """One row for each cell, clean run and mean that was compared."""
        from pandas import DataFrame

        from fedarena.cli.compare import as_json

        return DataFrame(as_json(self.comparison)["items"])

    def _repr_html_(self) -> str:
        return f"<p>{self.verdict}</p>"


def load_board(where: str | Path) -> Leaderboard:
    """A published board.json, or the board of a suite or a folder of records.

    Raises:
        UserError: there are no results, or the file is no board.
    """
    from fedarena.board.load import find_folder, load_board

    return Leaderboard(load_board(find_folder(str(path_of("board", where)))))


@told_in_python()
def compare(base: str | Path | Leaderboard, new: str | Path | Leaderboard, **options: Any) -> Difference:
    """Whether a score changed by more than its noise, as `bench compare` does.

    Args:
        base, new: boards, or where they are.
        options: those of `bench compare`: false_alarm, effect, losses_only, exact.

    Raises:
        UserError: no board, or an option that is not allowed.
    """
    from fedarena.board.gate.compare import compare
    from fedarena.cli.compare import read_rules

    rules = read_rules(parsed_args("compare", ["base", "new"], options))
    one, other = (b if isinstance(b, Leaderboard) else load_board(b) for b in (base, new))
    return Difference(compare(one.board, other.board, rules))
