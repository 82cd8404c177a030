"""Python's collector of reference cycles, held off."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """Collect no reference cycles meanwhile.

    The collector runs once for so many new objects, and looks at all of them each time. Where thousands of records are
    read, that takes a third of the time, and finds nothing.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
