"""One line for objects that hold much: a session shows what they are, not all that is in them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sized
from typing import Any

MOST = 60
"""The most letters of a field's own text."""


class ShortRepr:
    """A dataclass (made with `repr=False`) that shows shapes and counts in place of contents."""

    def __repr__(self) -> str:
        fields = dataclasses.fields(self)  # type: ignore[arg-type]  # mixed into dataclasses alone
        shown = (f"{f.name}={_short(getattr(self, f.name))}" for f in fields if not f.name.startswith("_"))
        return f"{type(self).__name__}({', '.join(shown)})"


def _short(value: Any) -> str:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    if isinstance(value, Sized) and not isinstance(value, str):
        return f"{type(value).__name__} of {len(value)}"
    text = repr(value)
    return text if len(text) <= MOST or isinstance(value, ShortRepr) else f"{text[:MOST]}…"
