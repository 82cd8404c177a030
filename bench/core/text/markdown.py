"""Pieces of markdown."""

from __future__ import annotations

import html
from collections.abc import Sequence


def escape(text: str) -> str:
    """Plain text, whatever it holds: no markup, no table bar, one line."""
    flat = " ".join(text.split())
    return "".join(f"\\{c}" if c in "\\`*_[]<>|#~" else c for c in flat)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of markdown that is escaped already."""
    lines = [list(heads), ["---"] * len(heads), *(list(row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def folded(title: str, body: str) -> str:
    """What opens on a click; `title` is plain text."""
    return f"<details>\n<summary>{html.escape(' '.join(title.split()), quote=False)}</summary>\n\n{body}\n\n</details>"


def code(lines: Sequence[str]) -> str:
    """A block of commands, fenced by more backticks than any of them has in a row."""
    fence = "```"
    while any(fence in line for line in lines):
        fence += "`"
    return "\n".join([f"{fence}sh", *(" ".join(line.split()) for line in lines), fence])


def items(lines: Sequence[str]) -> str:
    """A list of markdown that is escaped already."""
    return "\n".join(f"- {line}" for line in lines)
