"""The console to which all commands print: text of strangers cannot give orders to the terminal."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from fedarena.core.text.printable import printable

BEFORE_PERCENT = re.compile(r"(?<=\d) (?=%)")
JOINT = "\ue000"
"""Stands for a space at which no line may end, since rich ends lines at U+00A0, too."""


def joined(text: str) -> str:
    """The text with no space between a number and its %, at which a line could end. A `Terminal` prints the spaces."""
    return BEFORE_PERCENT.sub(JOINT, text)


def stdout_width(otherwise: int) -> int | None:
    """Columns that commands print in: a terminal's or those of COLUMNS, which rich finds at None; else `otherwise`."""
    columns = os.environ.get("COLUMNS", "")
    return None if sys.stdout.isatty() or (columns.isdigit() and int(columns)) else otherwise


class Terminal(Console):
    """A rich console that shows pictures in place of control characters in text.

    rich itself removes some of them, but not the one that begins an escape sequence. Its own colours and movements of
    the cursor are no text, and remain. No line ends between a number and its %.
    """

    def render_str(self, text: str, **how: Any) -> Text:
        """The text as rich reads it."""
        return super().render_str(joined(text), **how)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of a renderable."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text.replace(JOINT, " ")))
