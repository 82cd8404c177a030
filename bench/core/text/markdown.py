"""Pieces of markdown text."""

from __future__ import annotations

import html
from collections.abc import Sequence

from fedarena.core.text.printable import one_line


def escape(text: str) -> str:
    """Any text as one line that markdown shows as it is, in tables too."""
    flat = one_line(" ".join(text.split()))
    return "".join(f"\\{c}" if c in "\\`*_[]<>|#~" else c for c in flat)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table. Heads and cells are markdown, escaped by the caller. Cells are not padded: pages stay small."""
    from tabulate import tabulate

    return tabulate([list(row) for row in rows], list(heads), "github", stralign=None, disable_numparse=True)


def folded(title: str, body: str) -> str:
    """A section that opens on a click. The title is plain text, the body markdown."""
    summary = html.escape(one_line(" ".join(title.split())), quote=False)
    return f"<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>"


def code(lines: Sequence[str]) -> str:
    """A block of shell commands. Its fence has more backticks in a row than any command."""
    fence = "```"
    while any(fence in line for line in lines):
        fence += "`"
    return "\n".join([f"{fence}sh", *(one_line(" ".join(line.split())) for line in lines), fence])


def items(lines: Sequence[str]) -> str:
    """A list. Its items are markdown, escaped by the caller."""
    return "\n".join(f"- {line}" for line in lines)
