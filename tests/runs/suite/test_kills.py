"""Whatever kills a run, what was complete stays, nothing is half-written, nobody is left, and the next run goes on."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.killed_runs import PATIENCE, assert_whole, count, make_old, processes, unfinished, wait_for, workers
from helpers.suite import BARE, contents, measure, start, without_pictures, write_suite

from fedarena.cli import main
from fedarena.records.store import UNFINISHED
from fedarena.runs.suite.secret import keep_secret


def begin(where: Path, text: str) -> subprocess.Popen[str]:
    """`bench suite run`, writing into where/out."""
    suite = write_suite(where, text)
    return start("suite", "run", suite, "--out", "out", "--jobs", "2", "--quiet", cwd=where)


def finish(where: Path, text: str) -> None:
    """Run what is left, and clear what killed writes left once it is old."""
    make_old(where)
    assert measure(text, where).lost == {}
    assert not unfinished(where)


def kill_at_random(where: Path, text: str, rng: random.Random, how: int) -> None:
    """Start a run, and end it at some moment from its first second on to the last record."""
    before, there = contents(where / "out") if (where / "out").is_dir() else {}, count(where)
    process = begin(where, text)
    more = rng.choice([0, 1, 3, 8, 15])
    wait_for(lambda: count(where) >= there + more, lambda: process.poll() is not None)
    time.sleep(rng.uniform(0, 5 if more == 0 else 0.5))
    process.send_signal(how)
    process.communicate(timeout=PATIENCE)
    assert wait_for(lambda: not processes(process.pid)), processes(process.pid)
    if (where / "out").is_dir():
        assert_whole(where, before)


def interrupt(where: Path, text: str) -> None:
    """Start a run, and press Control-C: in a terminal the signal goes to every process of the run."""
    process = begin(where, text)
    assert wait_for(lambda: count(where) >= 3, lambda: process.poll() is not None)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert err.splitlines() == ["bench: interrupted; what was written is complete"]
    assert wait_for(lambda: not processes(process.pid)), processes(process.pid)
    assert_whole(where, {})


def test_interrupted_killed_and_terminated_it_goes_on_where_it_stopped(tmp_path: Path, tiny: Path) -> None:
    rng = random.Random(7)
    interrupt(tmp_path, BARE)
    for how in (signal.SIGKILL, signal.SIGTERM):
        kill_at_random(tmp_path, BARE, rng, how)
    finish(tmp_path, BARE)
    assert contents(tmp_path / "out") == without_pictures(tiny)


def test_a_worker_that_is_killed_costs_only_what_it_was_at(tmp_path: Path, tiny: Path) -> None:
    process = begin(tmp_path, BARE)
    assert wait_for(lambda: count(tmp_path) >= 3, lambda: process.poll() is not None)
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
    assert wait_for(lambda: not processes(process.pid)), processes(process.pid)


def test_a_killed_write_of_a_secret_leaves_what_the_next_run_removes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    monkeypatch.setattr(os, "link", lambda file, place: written.append(os.path.basename(file)))
    keep_secret(tmp_path, "0123456789abcdef" * 2)
    assert UNFINISHED.fullmatch(written[0])


def test_a_single_run_removes_what_killed_ones_left_as_well(tmp_path: Path) -> None:
    left = tmp_path / "out" / "records" / ".00ff.json.abcd1234"
    left.parent.mkdir(parents=True)
    left.touch()
    make_old(tmp_path)
    small = "--dataset digits --model mlp --set model.widths=4 --clients 3 --rounds 2 --jobs 1 --quiet --json"
    assert main(f"run --defense fedavg --attack last-layer-label {small} --out {tmp_path / 'out'}".split()) == 0
    assert not left.exists()
    assert count(tmp_path)
