"""Records as CSV: the table of `fa.read_records(…).to_frame()`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from fedarena.core.files import write_atomically
from fedarena.core.text.numbers import plural
from fedarena.core.text.spreadsheet import safe_cell
from fedarena.export.facts import Exported
from fedarena.records.frame import to_frame


def export(items: Sequence[Exported], out: str | None) -> str:
    """Write the table as RFC 4180 says, or print it where no file is named. Returns what was done.

    Text that a spreadsheet would take for a formula begins with an apostrophe.

    Raises:
        UserError: the file cannot be written.
    """
    frame = to_frame(item.record for item in items)
    text = frame.map(safe_cell).rename(columns=safe_cell).to_csv(index=False, lineterminator="\r\n")
    if out is None:
        sys.stdout.write(text)
        return ""
    write_atomically(Path(out), text)
    return f"{plural(len(items), 'record')}: {out}"
