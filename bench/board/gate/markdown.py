"""A comparison as markdown, for a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from fedarena.board.gate.comparison import Comparison
from fedarena.board.gate.wording import NUMBERS, caveats, notes, numbers, tally, verdict
from fedarena.core.text.markdown import escape, table
from fedarena.core.text.printable import one_line

SHOWN = 100
"""The most findings and new cells that are listed: a comment on a pull request holds 65,536 letters."""

COMMANDS = 5
"""The most commands that are listed."""


def markdown(c: Comparison) -> str:
    """Verdict, findings with their commands, counts, and how the boards were compared."""
    lines = [f"**{verdict(c)}**", "", f"{_code(c.new)} compared with {_code(c.base)}.", "", *_findings(c)]
    lines += [tally(c), "", *_commands(c)]
    lines += [*_folded("Changes that are no findings", notes(c)), *_folded("New", c.added)]
    lines += [f"<sub>{_escape(text)}</sub>\n" for text in caveats(c)]
    return "\n".join(lines).rstrip() + "\n"


def _findings(c: Comparison) -> list[str]:
    if not c.findings:
        return []
    rows = [(item.name, "; ".join(item.findings), *numbers(item)) for item in c.findings[:SHOWN]]
    heads = ("where", "what", *NUMBERS)
    return [table(heads, [[_escape(text) for text in row] for row in rows]), "", *_rest(len(c.findings))]


def _commands(c: Comparison) -> list[str]:
    """The commands that measure the first findings again."""
    commands = [item.command for item in c.findings if item.command][:COMMANDS]
    if not commands:
        return []
    return ["To measure the findings again:", "", *(f"    {_flat(command)}" for command in commands), ""]


def _folded(title: str, texts: Sequence[str]) -> list[str]:
    """A list that opens on a click; nothing where it is empty."""
    if not texts:
        return []
    summary = f"<details><summary>{title}: {len(texts)}</summary>"
    items = [f"- {_escape(text)}" for text in texts[:SHOWN]]
    return [summary, "", *items, "", *_rest(len(texts)), "</details>", ""]


def _rest(count: int) -> list[str]:
    return [f"… and {count - SHOWN} more.", ""] if count > SHOWN else []


def _escape(text: str) -> str:
    """Plain text that notifies no user: a reason may quote any exception's message."""
    return escape(text).replace("@", "&#64;")


def _code(text: str) -> str:
    return f"`{_flat(text).replace('`', '')}`"


def _flat(text: str) -> str:
    """One line: a line break would end the block of code, and a stranger's markdown would follow."""
    return one_line(" ".join(text.split()))
