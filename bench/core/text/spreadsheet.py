"""Text of strangers in a cell of a spreadsheet."""

from __future__ import annotations

from typing import Any

from fedarena.core.text.printable import printable


def safe_cell(value: Any) -> Any:
    """A cell whose text begins with an apostrophe where a spreadsheet would take it for a formula.

    The name of a plug-in or the text of an error must not become a formula in a reader's spreadsheet. Nor may it give
    orders to the terminal to which the table is printed.
    """
    if not isinstance(value, str):
        return value
    formula = value[:1] in ("=", "+", "-", "@", "\t", "\r")
    return f"'{printable(value)}" if formula else printable(value)
