"""The console to which all commands print: text of strangers cannot give orders to the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from fedarena.core.text.printable import printable


def stdout_width(otherwise: int) -> int | None:
    """Columns that commands print in: a terminal's or those of COLUMNS, which rich finds at None; else `otherwise`."""
    columns = os.environ.get("COLUMNS", "")
    return None if sys.stdout.isatty() or (columns.isdigit() and int(columns)) else otherwise


class Terminal(Console):
    """A rich console that shows pictures in place of control characters in text.

    rich itself removes some of them, but not the one that begins an escape sequence. Its own colours and movements of
    the cursor are no text, and remain.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of a renderable."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))
