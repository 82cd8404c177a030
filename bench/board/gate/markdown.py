"""A comparison as markdown, for a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from fedarena.board.gate.compare import Comparison
from fedarena.board.gate.wording import NUMBERS, caveats, notes, numbers, tally, verdict
from fedarena.core.text.markdown import escape, table

SHOWN = 100
"""Findings and new cells that are listed; a comment on a pull request holds 65,536 letters."""


def markdown(c: Comparison) -> str:
    """Verdict, what was found, counts, and what was compared how."""
    lines = [f"**{verdict(c)}**", "", f"{_code(c.new)} compared with {_code(c.base)}.", ""]
    if c.findings:
        lines += _table(("where", "what", *NUMBERS), [_row(c, i) for i in range(min(len(c.findings), SHOWN))])
        lines += _rest(len(c.findings))
    lines += [tally(c), ""]
    commands = [(item.name, item.command) for item in c.findings if item.command][:5]
    if commands:
        lines += ["To measure anew what was found:", ""]
        lines += [*(f"    {command}" for _, command in commands), ""]
    for title, told in (("Told, but no finding", notes(c)), ("New", list(c.added))):
        if told:
            lines += [f"<details><summary>{title}: {len(told)}</summary>", ""]
            lines += [f"- {_escape(t)}" for t in told[:SHOWN]] + [""] + _rest(len(told)) + ["</details>", ""]
    lines += [f"<sub>{_escape(t)}</sub>\n" for t in caveats(c)]
    return "\n".join(lines).rstrip() + "\n"


def _row(c: Comparison, i: int) -> Sequence[str]:
    item = c.findings[i]
    return (item.name, "; ".join(item.findings), *numbers(item))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [table(head, [[_escape(cell) for cell in row] for row in rows]), ""]


def _rest(found: int) -> list[str]:
    return [f"… and {found - SHOWN} more.", ""] if found > SHOWN else []


def _escape(text: str) -> str:
    """Text as it is: a reason may hold anything that an exception says, and must call nobody to the pull request."""
    return escape(text).replace("@", "&#64;")


def _code(text: str) -> str:
    return f"`{text.replace('`', '')}`"
