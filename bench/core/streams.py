"""The standard streams, which a shell or a service may have closed."""

from __future__ import annotations

import os
import sys


def open_streams() -> None:
    """Open the standard streams that are closed, to nowhere. Worker processes inherit the descriptors."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # it gets the least number that is free: this one
    for name, mode in {"stdin": "r", "stdout": "w", "stderr": "w"}.items():
        if getattr(sys, name) is None:  # its number may be that of a file of the caller's by now
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
