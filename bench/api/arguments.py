"""What a function of the API is given, as arguments of the command that does the same."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fedarena.core.errors import UserError, type_of

OBJECTS = ("defense", "rule", "attack", "dataset", "model")
"""Options that may be objects of the user's own."""


def named_options(options: dict[str, Any]) -> dict[str, Any]:
    """The options with names in place of objects; plug-in files that changed are read again. Raises UserError."""
    from fedarena.core.plugin_file import renew
    from fedarena.core.registry import held

    renew()
    if held():
        from fedarena.runs.own_objects import renew_versions

        renew_versions()
    objects = {
        kind: value
        for kind in OBJECTS
        if not isinstance(value := options.get(kind, ""), str) and not (value is None and kind in ("dataset", "model"))
    }
    if not objects:
        return options
    from fedarena.runs.own_objects import name_of

    return options | {option: name_of(option, value) for option, value in objects.items()}


def parsed_args(command: str, words: list[str], options: dict[str, Any]) -> argparse.Namespace:
    """The arguments of a command. Raises UserError."""
    from fedarena.cli import read_args

    for name, value in options.items():
        if name == "help":
            raise UserError("option 'help' is of commands: here `help(fa.run)` and its like print more")
        flag, several = f"--{name.replace('_', '-')}", list(value) if isinstance(value, list | tuple) else [value]
        if name in PATHS and value is not None:
            several = [path_of(name, one) for one in several]
        if "." in name:
            words.append(f"--set={name}={_text(value)}")
        elif name in REPEATED and value is not None:
            words += [f"{flag}={one}" for one in several]
        elif value is True:
            words.append(flag)
        elif value is not None and value is not False:
            words.append(f"{flag}={_text(value)}")
    with told_in_python():
        return read_args([command, *words])


@contextmanager
def told_in_python() -> Iterator[None]:
    """Errors of the user's in the words of a call."""
    try:
        yield
    except UserError as error:
        raise UserError(_in_python(str(error))) from None


def _in_python(message: str) -> str:
    """A message of the command in the words of a call: options by their names, without a hint to the command's help."""
    message = re.sub(r" \(see `bench [^`]*`\)$", "", message)
    message = re.sub(r"^unrecognized arguments: --([^=;]*)(=[^;]*)?", r"option '\1' is unknown", message)
    message = re.sub(r"^argument --([\w-]+): expected one argument", r"option '\1' is True, allowed: a value", message)
    message = message.replace("it is --set ", "it is ").replace("=VALUE", "").replace("option 'set'", "a dotted option")
    return re.sub(
        r"(option '|--)([\w-]+)", lambda m: m[1].replace("--", "") + m[2].lstrip("-").replace("-", "_"), message
    )


def _text(value: Any) -> str:
    from fedarena.core.options import to_text

    if isinstance(value, Mapping):
        return ",".join(f"{name}={one}" for name, one in value.items())
    several = isinstance(value, Iterable) and not isinstance(value, str | bytes)
    return to_text(tuple(value) if several else value)


def listener_of(progress: Any) -> Callable[..., None] | None:
    """The function that hears of progress; None where bars show it (True) or nothing does (False, None).

    Raises UserError for anything else.
    """
    if progress is None or isinstance(progress, bool):
        return None
    if not callable(progress):
        raise UserError(f"option 'progress' is {type_of(progress)}, allowed: True, False, or a function")
    return progress  # type: ignore[no-any-return]


@contextmanager
def listening(progress: Any) -> Iterator[Callable[[float, str], None]]:
    """What a search tells the share done and a text: the caller's function, or one bar, which is shown for True.

    Raises UserError for anything else.
    """
    from fedarena.cli.output.reproduce import progress_line

    listener = listener_of(progress)
    with progress_line(quiet=progress is not True) as bar:
        yield bar if listener is None else listener


PATHS = ("data_dir", "out", "plugin", "save_transcript")
"""Options that are paths."""
REPEATED = ("plugin", "problem")
"""Options of a command that may be repeated."""


def path_of(option: str, given: str | Path) -> Path:
    """Raises UserError for what is no path."""
    if not isinstance(given, str | Path) or not str(given):
        shown = repr(given) if isinstance(given, str) else type_of(given)
        raise UserError(f"option '{option}' is {shown}, allowed: a path")
    return Path(given)
