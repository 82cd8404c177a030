"""The ranking of the web page as readers without JavaScript see it."""

from __future__ import annotations

from html import escape

from fedarena.board.board import Board
from fedarena.board.leaderboard import Leaderboard, LeaderboardRow, columns
from fedarena.board.notes import curious_parties
from fedarena.board.page.heat_colours import heat_class
from fedarena.board.ranking import Score
from fedarena.board.threat_filter import ThreatFilter


def heads(board: Board, threats: ThreatFilter, weighted: bool) -> str:
    """The headings; table.js knows the columns by the same keys.

    Args:
        weighted: whether a weighted mean decides, which has a column then.
    """
    titles = {"rank": "rank", "defense": "defense", **_columns(board)}
    return "".join(
        f'<th scope="col" class="{column_class(key)}" data-key="{escape(key)}"{_hidden(key, threats, weighted)}>'
        f"{escape(title)}</th>"
        for key, title in titles.items()
    )


def rows(board: Board, threats: ThreatFilter, leaderboard: Leaderboard) -> str:
    """A line for each defense."""
    keys = list(_columns(board))
    return "\n".join(_row(row, keys, threats, leaderboard.weighted) for row in leaderboard.rows)


def column_class(key: str) -> str:
    """Which columns page.css folds away: `beside` on narrow screens, `more` on all, unless a reader unfolds them."""
    if key in ("rank", "defense", "weighted", "lowest"):
        return ""
    return "beside" if key in ("utility", "integrity", "privacy", "overall") else "more"


def _columns(board: Board) -> dict[str, str]:
    """Key → heading, with every party of the board, since the reader may choose other threats."""
    return columns(curious_parties(board, ThreatFilter()))


def _hidden(key: str, threats: ThreatFilter, weighted: bool) -> str:
    """The attribute that hides columns of threats and weights that are not chosen."""
    without_threat = (key.endswith("integrity") and not threats.knows) or (
        key.endswith("privacy") and not threats.parties
    )
    other_party = key.startswith("party:") and key.removeprefix("party:") not in threats.parties
    return " hidden" if without_threat or other_party or (key == "weighted" and not weighted) else ""


def _row(row: LeaderboardRow, keys: list[str], threats: ThreatFilter, weighted: bool) -> str:
    why = f'<small class="why">{escape(row.unranked)}</small>' if row.unranked else ""
    first = f'<td class="rank">{row.rank}</td><th scope="row">{escape(row.defense)}{why}</th>'
    cells = "".join(_cell(row, key, _hidden(key, threats, weighted)) for key in keys)
    look = ' class="unranked"' if row.unranked else ""
    return f"<tr{look}>{first}{cells}</tr>"


def _cell(row: LeaderboardRow, key: str, hidden: str) -> str:
    cell, column = row.cells[key], column_class(key)
    if cell.score is None:
        return f'<td class="{column}"{hidden}>{escape(cell.text)}</td>'
    kind = {"lowest": "axis", "integrity": "case", "privacy": "case"}.get(key)
    case = f'<small class="{kind}">{escape(cell.worst_case)}</small>' if kind else ""
    number, space, interval = cell.text.partition(" ")
    beside = f'<span class="interval">{escape(space + interval)}</span>' if space else ""
    look = " ".join(name for name in (_look(cell.score), column) if name)
    return f'<td class="{look}"{hidden}>{escape(number)}{beside}{case}</td>'


def _look(score: Score) -> str:
    """The classes of a score: a colour, or hatching where no attack could start."""
    if score.value is None:
        return "score"
    return f"score {heat_class(score.value.value)}" if score.cells else "score hatched"
