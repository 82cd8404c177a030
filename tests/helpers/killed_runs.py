"""What must hold of a run that was killed: its processes are gone, its files whole, and nothing of it is left."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from fedarena.records import store
from fedarena.records.store import STALE, UNFINISHED
from fedarena.records.trial_key import key_of
from helpers.forked_bench import MARK
from helpers.suite import contents, records_in

PATIENCE = 600.0
"""Seconds for what takes a moment: only how long a broken harness is waited for."""


def processes(leader: int, mark: str = "") -> dict[int, str]:
    """Command lines of the processes of a session that are alive, and of those that inherited its mark, by id."""
    found, variable = {}, f"{MARK}={mark}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, _, _, sid = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                own = int(sid) == leader or (mark and variable in (entry / "environ").read_bytes().split(b"\0"))
            except OSError:
                continue
            if own and state not in "ZX":
                found[int(entry.name)] = line
    return found


def wait_for(what: Callable[[], object], ended: Callable[[], object] = lambda: False, every: float = 0.02) -> bool:
    """Wait until something is true, or the process has ended, or for ever."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if what():
            return True
        if ended():
            return False
        time.sleep(every)
    return False


def workers(leader: int) -> list[int]:
    """Worker processes of a run."""
    return [pid for pid, line in processes(leader).items() if "popen_loky" in line and pid != leader]


def count(where: Path) -> int:
    """Records that are there."""
    return len(list((where / "out" / "records").glob("*.json")))


def assert_whole(where: Path, before: dict[str, str]) -> dict[str, str]:
    """Every file is whole, nothing that was there is lost, and all else is what a killed write leaves."""
    found = contents(where / "out")
    for name, record in records_in(where / "out").items():
        assert key_of(record) == record["key"] == name.removesuffix(".json")
    assert before.items() <= found.items()
    for path in (where / "out").rglob("*"):
        if path.is_file() and path.suffix != ".json" and path.name not in (".claims", "secret"):
            if path.suffix == ".npz":
                assert store.load_pictures(where / "out", path.stem) is not None
            else:
                assert UNFINISHED.fullmatch(path.name), path
    return found


def make_old(where: Path) -> None:
    """Let what killed writes left be as old as what the next run removes."""
    for path in (where / "out").rglob(".*"):
        if UNFINISHED.fullmatch(path.name):
            old = path.stat().st_mtime - STALE - 1
            os.utime(path, (old, old))


def unfinished(where: Path) -> list[Path]:
    """Files that a killed write left."""
    return [path for path in (where / "out").rglob(".*") if path.name != ".claims"]
