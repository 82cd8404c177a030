"""Whatever kills a run, what was complete stays, nothing is half-written, nobody is left, and the next run goes on."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from helpers.suite import BARE, TINY, contents, measure, records_in, start, without_pictures, write_suite

from fedarena.records import store
from fedarena.records.store import STALE, UNFINISHED
from fedarena.records.trial_key import key_of

PATIENCE = 120.0
"""Seconds for what takes a moment: only how long a broken harness is waited for."""


def session(leader: int) -> dict[int, str]:
    """Command lines of the processes of a session that are alive, by id."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, _, _, sid = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if int(sid) == leader and state not in "ZX":
                found[int(entry.name)] = line
    return found


def wait_for(what: Callable[[], object], process: subprocess.Popen[str] | None = None) -> bool:
    """Wait until something is true, or the process has ended, or for ever."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if what():
            return True
        if process is not None and process.poll() is not None:
            return False
        time.sleep(0.02)
    return False


def workers(leader: int) -> list[int]:
    """Worker processes of a run."""
    return [pid for pid, line in session(leader).items() if "popen_loky" in line and pid != leader]


def begin(where: Path, text: str, seeds: str = "0,1") -> subprocess.Popen[str]:
    """`bench suite run`, writing into where/out."""
    suite = write_suite(where, text)
    return start("suite", "run", suite, "--seeds", seeds, "--out", "out", "--jobs", "2", "--quiet", cwd=where)


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
        if path.is_file() and path.suffix != ".json" and path.name != ".claims":
            if path.suffix == ".npz":
                assert store.load_pictures(where / "out", path.stem) is not None
            else:
                assert UNFINISHED.fullmatch(path.name), path
    return found


def finish(where: Path, text: str, seeds: Sequence[int] = (0, 1)) -> None:
    """Run what is left, and clear what killed writes left once it is old."""
    for path in (where / "out").rglob(".*"):
        if UNFINISHED.fullmatch(path.name):
            old = path.stat().st_mtime - STALE - 1
            os.utime(path, (old, old))
    assert measure(text, where, seeds=seeds).lost == {}
    assert not [path for path in (where / "out").rglob(".*") if path.name != ".claims"]


def kill_at_random(where: Path, text: str, rng: random.Random, how: int, seeds: str) -> None:
    """Start a run, and end it at some moment from its first second on to the last record."""
    before, there = contents(where / "out") if (where / "out").is_dir() else {}, count(where)
    process = begin(where, text, seeds)
    more = rng.choice([0, 1, 3, 8, 15])
    wait_for(lambda: count(where) >= there + more, process)
    time.sleep(rng.uniform(0, 5 if more == 0 else 0.5))
    process.send_signal(how)
    process.communicate(timeout=PATIENCE)
    assert wait_for(lambda: not session(process.pid)), session(process.pid)
    if (where / "out").is_dir():
        assert_whole(where, before)


def interrupt(where: Path, text: str) -> None:
    """Start a run, and press Control-C: in a terminal the signal goes to every process of the run."""
    process = begin(where, text)
    assert wait_for(lambda: count(where) >= 3, process)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert err.splitlines() == ["bench: interrupted; what was written is complete"]
    assert wait_for(lambda: not session(process.pid)), session(process.pid)
    assert_whole(where, {})


def test_interrupted_killed_and_terminated_it_goes_on_where_it_stopped(tmp_path: Path, tiny: Path) -> None:
    rng = random.Random(7)
    interrupt(tmp_path, BARE)
    for how in (signal.SIGKILL, signal.SIGTERM):
        kill_at_random(tmp_path, BARE, rng, how, "0,1")
    finish(tmp_path, BARE)
    assert contents(tmp_path / "out") == without_pictures(tiny)


@pytest.mark.slow
def test_twenty_kills_at_random_moments(tmp_path: Path) -> None:
    rng, seeds = random.Random(11), tuple(range(8))
    told = ",".join(map(str, seeds))
    for _ in range(20):
        kill_at_random(tmp_path, TINY, rng, signal.SIGKILL, told)
    finish(tmp_path, TINY, seeds)
    undisturbed = tmp_path / "undisturbed"
    undisturbed.mkdir()
    measure(TINY, undisturbed, seeds=seeds)
    assert contents(tmp_path / "out") == contents(undisturbed / "out")


def test_a_worker_that_is_killed_costs_only_what_it_was_at(tmp_path: Path, tiny: Path) -> None:
    process = begin(tmp_path, BARE)
    assert wait_for(lambda: count(tmp_path) >= 3, process)
    os.kill(workers(process.pid)[0], signal.SIGKILL)
    out, err = process.communicate()
    assert process.returncode == 0, out + err
    assert "not measured" not in out
    assert assert_whole(tmp_path, {}) == without_pictures(tiny)


def test_workers_without_work_end_with_their_parent_too(tmp_path: Path) -> None:
    """Two are started for the first call, and only one gets it."""
    code = (
        "import time; from fedarena.runs.executors import Local\n"
        "Local(2).submit(int).result(); print('ready', flush=True); time.sleep(600)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True, cwd=tmp_path
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert len(workers(process.pid)) == 2
    process.kill()
    process.communicate(timeout=PATIENCE)
    assert wait_for(lambda: not session(process.pid)), session(process.pid)
