"""How far a reader must walk to follow one command: the package's files and functions that it passes.

    python benchmarks/trip.py                              # bench run --defense dbcl --attack dlg, six rounds
    python benchmarks/trip.py --functions                  # each file with the functions that run in it
    python benchmarks/trip.py bench explain dbcl dlg       # any other command

The command runs in this process, in an empty folder, with one job. A file counts where one of its functions is called.
The top level of a module, the bodies of its classes, comprehensions and lambdas are no functions. Files are listed in
the order of their first call. The package that is traced is the one that is imported: PYTHONPATH chooses the version.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import fedarena

PACKAGE = Path(fedarena.__file__).parent
COMMAND = ("run", "--defense", "dbcl", "--attack", "dlg", "--rounds", "6", "--jobs", "1", "--quiet")


class Trip:
    """The functions of the package that are called while it is followed, by file, both in the order of first call."""

    def __init__(self) -> None:
        self.functions: dict[str, list[str]] = {}
        self._files: dict[str, str | None] = {}
        self._seen: dict[int, CodeType] = {}

    @contextlib.contextmanager
    def followed(self) -> Iterator[None]:
        """Note every call of this thread."""
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call" or id(code) in self._seen:
            return
        self._seen[id(code)] = code  # code of two files can be equal, so that it is told apart by identity
        file = self._file(code.co_filename)
        # Code without a name of its own is named "<module>", "<lambda>" or "<listcomp>"; a class body is not optimized.
        if file is not None and not code.co_name.startswith("<") and code.co_flags & CO_OPTIMIZED:
            self.functions.setdefault(file, []).append(code.co_qualname)

    def _file(self, name: str) -> str | None:
        """The path of a file of the package inside it; None for other files."""
        if name not in self._files:
            path = Path(name)
            inside = path.is_relative_to(PACKAGE)
            self._files[name] = str(path.relative_to(PACKAGE)) if inside else None
        return self._files[name]


def main(arguments: Sequence[str]) -> None:
    """Run the command and print what it passed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", action="store_true", help="list the functions of each file, too")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="bench ..., the command to follow")
    chosen = parser.parse_args(arguments)
    command = chosen.command[1:] if chosen.command[:1] == ["bench"] else chosen.command
    trip = Trip()
    # In a folder of its own, so that nothing that was measured before is read.
    with tempfile.TemporaryDirectory() as folder:
        before = os.getcwd()
        os.chdir(folder)
        try:
            with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), trip.followed():
                code = run(command or COMMAND)
        finally:
            os.chdir(before)
    if code:
        sys.exit(code)
    for file, functions in trip.functions.items():
        print(f"{len(functions):4d}  {file}")
        if chosen.functions:
            print("".join(f"          {name}\n" for name in functions), end="")
    print(f"{sum(map(len, trip.functions.values()))} functions in {len(trip.functions)} files")


def run(command: Sequence[str]) -> int:
    """Carry out a command of `bench`; its exit code."""
    from fedarena.cli import main as bench

    return bench(command)


if __name__ == "__main__":
    main(sys.argv[1:])
