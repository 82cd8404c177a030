"""Lists and attackers in words, as sentences about a board need them."""

from __future__ import annotations

from collections.abc import Sequence

from fedarena.board.board import BoardCell
from fedarena.core.text.numbers import Mean

LISTED = 5
"""Names that a shortened list keeps."""


def join_and(words: Sequence[str]) -> str:
    """ "a, b and c"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def join_or(words: Sequence[str]) -> str:
    """ "a, b or c"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def shortened(words: Sequence[str]) -> list[str]:
    """The first words of a long list, and how many more there are."""
    rest = len(words) - LISTED
    return [*words[:LISTED], f"{rest} more"] if rest > 0 else list(words)


def attacker(party: str, knowledge: str) -> str:
    """ "the server" or "corrupted clients (own)"."""
    return f"corrupted clients ({knowledge})" if knowledge else f"the {party}"


def attack_text(c: BoardCell, several_problems: bool) -> str:
    """ "dlg by the server in adaptive form on digits"."""
    where = f" on {c.problem}" if several_problems else ""
    by = f", found by {c.found_by}" if c.found_by else ""
    return f"{c.attack} by {attacker(c.party, c.knows)} in {c.form} form{where}{by}"


def difference_text(m: Mean | None) -> str:
    """A difference with its interval; unlike a share it may lie beyond [0, 1]."""
    if m is None:
        return ""
    return f"{m.value:.3f}" if m.half is None else f"{m.value:.3f} ± {m.half:.3f}"
