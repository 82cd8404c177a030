"""Exceptions whose message is written for the user, and one-line descriptions of all others."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from types import FrameType


class UserError(Exception):
    """Bad input. The message names the option, its value and what is allowed.

    The command line prints it as one line on stderr and exits with code 2, without a traceback.
    Library callers can catch it like any other exception.
    """


class WorkerDied(Exception):
    """A worker process or machine was lost: killed, out of memory or cut off. Its work may be tried again.

    The command line prints it as one line on stderr and exits with code 1, without a traceback.
    """


class ToldByProcess(Exception):
    """What went wrong in another process, in its words."""


LIBRARIES = {"fedarena", "torch", "torchvision", "numpy", "scipy", "sklearn", "pandas", "joblib", "ray"}
"""Packages whose lines say less of an error than the line of a method that called them."""


def describe(error: Exception) -> str:
    """The type, message and place of an exception, in one line.

    The place is the innermost line of a method of the user's own or of another package; without one it is the innermost
    line of all.
    """
    if isinstance(error, ToldByProcess):
        return str(error)
    places = list(traceback.walk_tb(error.__traceback__))
    frame, line = next((place for place in reversed(places) if _is_a_methods(place[0])), places[-1])
    text = " ".join(str(error).split())[:300]
    code = frame.f_code
    return f"{type(error).__name__}: {text} (in {code.co_name}, {Path(code.co_filename).name}:{line})"


def _is_a_methods(frame: FrameType) -> bool:
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return package not in LIBRARIES and package not in sys.stdlib_module_names
