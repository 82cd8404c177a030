"""Records as a Parquet file: the table of `fa.read_records(…).to_frame()`."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from fedarena.core.errors import UserError
from fedarena.core.files import write_atomically
from fedarena.core.text.numbers import plural
from fedarena.export.facts import Exported
from fedarena.interop.library import release
from fedarena.records.frame import to_frame


def export(items: Sequence[Exported], out: str | None) -> str:
    """Write the table. Returns what was done.

    Raises:
        UserError: pyarrow is missing, no file is named, or it cannot be written.
    """
    release("pyarrow", "parquet", "--to parquet")
    if out is None:
        raise UserError("option 'out' is not given, and --to parquet prints nothing: add --out records.parquet")
    content = io.BytesIO()
    to_frame(item.record for item in items).to_parquet(content, engine="pyarrow", index=False)
    write_atomically(Path(out), content.getvalue())
    return f"{plural(len(items), 'record')}: {out}"
