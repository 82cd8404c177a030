"""A disk that is full and a folder that becomes read-only end a run with one line; mended, it goes on."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from helpers.killed_runs import assert_whole, unfinished
from helpers.suite import BARE, contents, measure, planned, without_pictures

from fedarena.core.errors import UserError
from fedarena.runs.executors import InProcess
from fedarena.runs.suite.run import run_suite

Made = Callable[..., None]


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Made]:
    """mount(words..., folder): mounts something for the time of a test. Raises OSError where that is not allowed."""
    mounted: list[Path] = []

    def make(*words: str, folder: Path) -> None:
        if subprocess.run(["mount", *words, str(folder)], capture_output=True).returncode:
            raise PermissionError("nothing can be mounted here")
        mounted.append(folder)

    yield make
    for folder in mounted:
        subprocess.run(["umount", str(folder)], capture_output=True)


@contextmanager
def longest_file(size: int) -> Iterator[None]:
    """No file grows beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def assert_it_goes_on(where: Path, tiny: Path) -> None:
    """What was written is whole, nothing else is there, and the next run measures the rest alone."""
    there = assert_whole(where, {})
    assert not unfinished(where)
    outcome = measure(BARE, where)
    assert outcome.lost == {}
    assert contents(where / "out") == without_pictures(tiny)
    assert outcome.done < 44 or not there


def test_a_disk_that_is_full_is_one_line_and_harms_nothing(tmp_path: Path, tiny: Path, mount: Made) -> None:
    try:
        mount("-t", "tmpfs", "-o", "size=100k", "tmpfs", folder=tmp_path)
    except OSError:
        with longest_file(30_000), pytest.raises(UserError, match=r"^cannot write .*: File too large$"):
            measure(BARE, tmp_path)
    else:
        with pytest.raises(UserError, match=r"^cannot write .*: No space left on device$"):
            measure(BARE, tmp_path)
        assert contents(tmp_path / "out")
        mount("-o", "remount,size=10m", folder=tmp_path)
    assert_it_goes_on(tmp_path, tiny)


def test_a_folder_that_becomes_read_only_is_one_line_and_harms_nothing(tmp_path: Path, tiny: Path, mount: Made) -> None:
    records = tmp_path / "out" / "records"

    def close(done: int, *told: object) -> None:
        if done == 5 and os.geteuid():
            records.chmod(0o555)
        elif done == 5:  # permissions do not hold for root
            with suppress(OSError):
                mount("--bind", str(records), folder=records)
                mount("-o", "remount,bind,ro", folder=records)

    suite, plan = planned(BARE, tmp_path)
    told = ""
    try:
        run_suite(suite, plan, tmp_path / "out", None, InProcess, report_progress=close)
    except UserError as error:
        told = str(error)
    if not told and not os.geteuid() and not records.is_mount():
        pytest.skip("nothing can be mounted here")
    assert told.startswith(f"cannot write {records}")
    assert len(contents(tmp_path / "out")) >= 5
    with pytest.raises(UserError, match=r"^option 'out' is .*records, which cannot be written"):
        measure(BARE, tmp_path)
    if os.geteuid():
        records.chmod(0o755)
    else:
        subprocess.run(["umount", str(records)], check=True)
    assert_it_goes_on(tmp_path, tiny)
