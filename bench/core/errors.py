"""Exceptions whose message is written for the user, and one-line descriptions of all others."""

from __future__ import annotations

import inspect
import sys
import traceback
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")


class UserError(Exception):
    """Bad input. The message names the option, its value and what is allowed.

    The command line prints it as one line on stderr and exits with code 2, without a traceback.
    Library callers can catch it like any other exception.
    """


class WorkerDied(Exception):
    """A worker process or machine was lost: killed, out of memory or cut off. Its work may be tried again.

    The command line prints it as one line on stderr and exits with code 1, without a traceback.
    """


class ClusterGone(Exception):
    """A cluster of machines can carry out no call any more, as the message says.

    The command line prints it as one line on stderr and exits with code 1, without a traceback.
    """


class ToldByProcess(Exception):
    """What went wrong in another process, in its words."""


class UnusableAnswer(ToldByProcess):
    """A method returned something that is no answer: the message has its place, and what is allowed."""


LACK_OF_MEMORY = (
    "allocate memory",  # on a CPU: "can't allocate memory", "Cannot allocate memory"
    "not enough memory",  # on a CPU of Windows
    "out of memory",  # on a GPU
    "Storage size calculation overflowed",  # more bytes than can be counted
    "Overflow when unpacking long",  # a width beyond 64 bits
)
"""Texts of PyTorch's errors for a tensor that is too large; PyTorch has no class for them on a CPU."""


def lacks_memory(error: BaseException) -> bool:
    """Whether an error is that of a tensor that is too large."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in LACK_OF_MEMORY)


LIBRARIES = {"fedarena", "torch", "torchvision", "numpy", "scipy", "sklearn", "pandas", "joblib", "ray"}
"""Packages whose lines say less of an error than the line of a method that called them."""


def describe(error: BaseException, anywhere: bool = True) -> str:
    """The type, message and place of an exception, in one line.

    The place is the innermost line of a method of the user's own or of another package; without one it is the innermost
    line of all.

    Args:
        anywhere: False: without a line of such a method, there is no place.
    """
    if isinstance(error, ToldByProcess):
        return str(error)
    line = line_of_method(error)
    if isinstance(error, UserError):  # its message says where, unless a method passed it on
        return f"{error} (in {line})" if line else str(error)
    line = line or (_place(*_places(error)[-1]) if anywhere else "")
    text = " ".join(text_of(error).split())[:300]
    return f"{type(error).__name__}: {text}{f' (in {line})' if line else ''}"


def text_of(error: BaseException) -> str:
    """The message of an exception, whose class may be a method's own and fail at that."""
    try:
        return str(error)
    except Exception:
        return "it has no message"


def line_of_method(error: BaseException) -> str:
    """The innermost line of a method of the user's own or of another package; "" where there is none."""
    return next((_place(*place) for place in reversed(_places(error)) if _is_a_methods(place[0])), "")


def packages_of(error: BaseException) -> set[str]:
    """The packages whose lines an exception has passed."""
    return {_package(frame) for frame, _ in _places(error)}


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _places(error: BaseException) -> list[tuple[FrameType, int]]:
    return list(traceback.walk_tb(error.__traceback__))


def _place(frame: FrameType, line: int) -> str:
    return f"{frame.f_code.co_name}, {Path(frame.f_code.co_filename).name}:{line}"


def _is_a_methods(frame: FrameType) -> bool:
    package = _package(frame)
    return package not in LIBRARIES and package not in sys.stdlib_module_names


def type_of(value: Any) -> str:
    """What a value is, in messages: "an int", "a list", "a class", "None"."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return "a class"
    return with_article(type(value).__name__)


def of_type(wanted: type[T], returned: Any, kind: str, method: Any) -> T:
    """What a method of the user's own returned. Raises UserError, with its place, unless it is of this class."""
    if not isinstance(returned, wanted):
        told = f"{kind} {place_of(method)} returned {type_of(returned)}"
        raise UserError(f"{told}, allowed: {with_article(wanted.__name__)}")
    return returned


def with_article(name: str) -> str:
    """A name in messages: "an int", "a list"."""
    return f"{'an' if name[0].lower() in 'aeio' else 'a'} {name}"


def place_of(made: Any) -> str:
    """The name, file and first line of a function or a class of the user's own, such as "middle (my_rule.py:9)".

    An object has those of its class, and what is around a function those of the function. What is written in no file
    has its name alone.
    """
    made = inspect.unwrap(made.func if isinstance(made, partial) else made)
    made = made if hasattr(made, "__qualname__") else type(made)
    name: str = made.__qualname__
    if (code := getattr(made, "__code__", None)) is not None:
        return f"{name} ({Path(code.co_filename).name}:{code.co_firstlineno})"
    try:
        return f"{name} ({Path(inspect.getfile(made)).name}:{inspect.getsourcelines(made)[1]})"
    except (OSError, TypeError):
        return name
