"""Runs `bench` in this process on an input of the fuzzer, and says what is wrong with how the command took it.

A command ends with 0, 1 or 2, and with 2 after exactly one line on stderr that begins with "bench: ". It raises
nothing, takes no longer than `SECONDS`, prints no control characters, prints with `--json` what is JSON, and writes
only into the folder that it was given.
"""

from __future__ import annotations

import io
import json
import os
import re
import resource
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

from helpers.plugin_files import forgotten

from fedarena.cli import main

SECONDS = 60.0
MEMORY = 6 << 30
"""Bytes that a command may ask for beside what the process has: more is a MemoryError, and not the end of the tests."""
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")
"""Line breaks and tabs are none: a table of CSV ends its lines with both."""
BLOCKED = "blocked"
"""A file in the folder of every case. As `--out` it ends a run after all checks and before any training."""
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = {
    "os.mkdir": 1,
    "os.remove": 1,
    "os.rmdir": 1,
    "os.rename": 2,
    "os.link": 2,
    "os.symlink": 2,
    "os.truncate": 1,
}
"""Audit event → how many of its first arguments are paths."""
LOCAL = ("127.0.0.1", "localhost", "::1")


class TookTooLong(BaseException):
    """The command did not end in time. No `except Exception` catches it."""


@dataclass(frozen=True)
class Fault:
    """Something that must not happen.

    Attributes:
        sort: traceback, hang, output, outside or nonsense.
        told: what happened, in one line; two faults with the same text are one.
        more: the traceback or the output.
    """

    sort: str
    told: str
    more: str = ""


@dataclass(frozen=True)
class Outcome:
    """How a command ended: its exit code (None after an exception), its output, and what is wrong with that."""

    code: int | None
    out: str
    err: str
    faults: tuple[Fault, ...]

    @property
    def accepted(self) -> bool:
        """Whether all of the input was taken: something was done, or a run had begun but for its folder."""
        return self.code in (0, 1) or f"option 'out' is {BLOCKED}, which cannot be written" in self.err

    @property
    def lacked_memory(self) -> bool:
        """Whether it ended since it asked for more memory than there is."""
        return "bench: it does not fit in memory" in self.err


class _Kept(io.BytesIO):
    """Bytes that can be read after the stream around them was closed."""

    def close(self) -> None: ...


class _Watch:
    """What the audit hook of this process knows: the folder of the present case, and what was written elsewhere."""

    def __init__(self) -> None:
        self.folder: str | None = None
        self.outside: list[str] = []
        self.hooked = False

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        """Forbid what the command must not do, as a system would."""
        if self.folder is None:
            return
        if event == "open" and isinstance(args[2], int) and args[2] & WRITES:
            self._require_inside(event, args[0])
        elif event in CHANGES:
            for path in args[: CHANGES[event]]:
                self._require_inside(event, path)
        elif event == "socket.connect" and isinstance(args[1], tuple) and args[1][0] not in LOCAL:
            raise ConnectionRefusedError(111, "Connection refused")
        elif event == "socket.getaddrinfo" and args[0] not in (*LOCAL, None):
            raise OSError(-3, "Temporary failure in name resolution")

    def _require_inside(self, event: str, path: Any) -> None:
        if not isinstance(path, str | bytes | os.PathLike) or self.folder is None:
            return
        name = os.fsdecode(path)
        parent, last = os.path.split(os.path.abspath(name))
        place = os.path.join(os.path.realpath(parent), last)
        if place != self.folder and not place.startswith((f"{self.folder}/", "/dev/", "/proc/self/")):
            self.outside.append(f"{event} {place}")
            raise PermissionError(13, "Permission denied", name)


_watch = _Watch()


@contextmanager
def _watched(folder: Path) -> Iterator[list[str]]:
    """What the block tries to write outside of the folder; it fails to."""
    if not _watch.hooked:
        sys.addaudithook(_watch)
        _watch.hooked = True
    _watch.folder, _watch.outside = os.path.realpath(folder), []
    try:
        yield _watch.outside
    finally:
        _watch.folder = None


@contextmanager
def _limited(seconds: float) -> Iterator[list[str]]:
    """The block is ended after so long, or where it asks for too much memory; holds where it was when it was ended."""
    ended: list[str] = []

    def end(number: int, frame: FrameType | None) -> None:
        ended.append(_place(frame))
        signal.setitimer(signal.ITIMER_REAL, 1.0)  # should the command go on all the same
        raise TookTooLong

    before = signal.signal(signal.SIGALRM, end)
    interrupts = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    memory = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, memory[1]))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield ended
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, memory)
        signal.signal(signal.SIGALRM, before)
        for number, handler in interrupts.items():
            signal.signal(number, handler)


@contextmanager
def _at(folder: Path) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    """The folder is the present one, and its own home; streams are as those of a process. Yields stdout and stderr."""
    private = {"HOME": folder, "XDG_CACHE_HOME": folder / "cache", "FEDARENA_DATA": folder / "data", "TMPDIR": folder}
    here, out, err = os.getcwd(), _Kept(), _Kept()
    bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    streams = (io.TextIOWrapper(out, "utf-8"), io.TextIOWrapper(err, "utf-8", "backslashreplace"))
    os.chdir(folder)
    try:
        with (
            patch.dict(os.environ, {name: str(path) for name, path in private.items()}),
            patch.object(tempfile, "tempdir", str(folder)),
            patch.object(sys, "stdout", streams[0]),
            patch.object(sys, "stderr", streams[1]),
        ):
            yield out, err
            for stream in streams:
                if not stream.closed:
                    stream.flush()
    finally:
        os.chdir(here)
        sys.dont_write_bytecode = bytecode


def judge(
    argv: Sequence[str], folder: Path, given: Sequence[str] = (), printed: str = "", seconds: float = SECONDS
) -> Outcome:
    """Run a command in a folder.

    Args:
        given: paths outside of the folder that the command line names itself, into which it may write.
        printed: what a file of the input prints itself, and which counts for nothing on stderr.
        seconds: after how long it is ended.
    """
    (folder / BLOCKED).touch()
    code, raised = None, ""
    with forgotten(), _limited(seconds) as ended, _at(folder) as (out, err), _watched(folder) as outside:
        try:
            code = main(argv)
        except SystemExit as error:  # argparse's, after --help and --version
            code, raised = (0, "") if not error.code else (None, f"SystemExit({error.code!r})")
        except TookTooLong:
            pass
        except BaseException as error:
            raised = _signature(error)
            err.write(traceback.format_exc().encode("utf-8", "backslashreplace"))
    told, errors = (stream.getvalue().decode("utf-8", "replace") for stream in (out, err))
    faults = [Fault("hang", f"it was ended after {seconds:g} s, {place}") for place in ended[:1]]
    faults += [Fault("traceback", raised, errors)] if raised else []
    if not faults:
        faults += _of_output(argv, code, told, errors.replace(printed, ""))
    escaped = [one for one in outside if not any(one.split(" ", 1)[1].startswith(path) for path in given)]
    faults += [Fault("outside", f"it wrote elsewhere: {escaped[0]}")] if escaped else []
    return Outcome(code, told, errors, tuple(faults))


def _of_output(argv: Sequence[str], code: int | None, out: str, err: str) -> Iterator[Fault]:
    """What is wrong with an exit code and the output that goes with it."""
    if code not in (0, 1, 2):
        yield Fault("output", f"exit code {code}", err)
    if code == 2 and not re.fullmatch(r"bench: [^\n]*\n", err):
        yield Fault("output", "exit code 2, and stderr is not one line that begins with 'bench: '", err)
    for name, text in (("stdout", out), ("stderr", err)):
        if found := CONTROL.search(text):
            yield Fault("output", f"{found[0]!r} on {name}", text[max(0, found.start() - 200) :][:400])
        if "Traceback (most recent call last)" in text:
            yield Fault("traceback", f"a traceback on {name}", text)
    if code in (0, 1) and "--json" in argv and not {"-h", "--help", "--version"} & {*argv}:
        try:
            json.loads(out, parse_constant=lambda word: 1 / 0)
        except (ValueError, ZeroDivisionError):
            yield Fault("output", "with --json stdout is no JSON", out[:500])


def _place(frame: FrameType | None) -> str:
    """The innermost line of the package that a frame was called from."""
    while frame is not None and "fedarena" not in str(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return "" if frame is None else f"{Path(frame.f_code.co_filename).name}, {frame.f_code.co_name}"


def _signature(error: BaseException) -> str:
    """The type of an exception and the innermost function of the package that it left."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return f"{type(error).__name__} in {_place(frames[-1])}"


def counted(outcome: Outcome, faults: Sequence[Fault]) -> Counter[str]:
    """The columns of the table that an outcome counts in."""
    columns = Counter({fault.sort: 1 for fault in faults})
    columns["2" if outcome.code == 2 else "0/1" if outcome.code in (0, 1) else "none"] += 1
    return columns
