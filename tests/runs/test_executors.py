"""Executors: a call's result or its own error comes back, a dead worker is told apart, nobody is left."""

from __future__ import annotations

import os
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from pathlib import Path

import pytest
import torch
from helpers.fresh_python import run_python

from fedarena.core.errors import UserError, WorkerDied
from fedarena.core.files import write_atomically
from fedarena.runs.executors import Executor, InProcess, Local, Ray, arithmetic, cores, executor, usual_jobs


def triple(x: int) -> int:
    return 3 * x


def refuse() -> None:
    raise UserError("option 'x' is 1, allowed: 2")


def die() -> None:
    os._exit(3)


def busy(told: Path) -> None:
    write_atomically(told, str(os.getpid()))
    time.sleep(600)


def parent() -> tuple[int, int]:
    return os.getpid(), os.getppid()


def nearly_zero() -> float:
    return float((torch.full((64,), 1e-30) * 1e-10).sum())


def inside_and_after() -> tuple[int, float, float]:
    with arithmetic():
        inside = nearly_zero()
    return torch.get_num_threads(), inside, nearly_zero()


@pytest.fixture(scope="module", params=["here", "local"])
def place(request: pytest.FixtureRequest) -> Iterator[Executor]:
    made: Executor = InProcess() if request.param == "here" else Local(2)
    yield made
    made.stop()


def test_results_and_errors_come_back(place: Executor) -> None:
    assert [place.submit(triple, i).result() for i in range(3)] == [0, 3, 6]
    with pytest.raises(UserError, match=r"^option 'x' is 1, allowed: 2$"):
        place.submit(refuse).result()
    assert place.submit(triple, 5).result() == 15


def test_torch_computes_on_one_thread_and_flushes_denormal_numbers(place: Executor) -> None:
    """Nor does it leave this behind in whoever's process it is."""
    threads, inside, after = place.submit(inside_and_after).result()
    assert (threads, inside) == (1, 0.0)
    assert after == pytest.approx(64e-40, rel=1e-3, abs=0)


def test_who_computes_so_already_goes_on_so() -> None:
    torch.set_flush_denormal(True)
    try:
        assert inside_and_after()[2] == 0.0
    finally:
        torch.set_flush_denormal(False)


def test_a_dead_worker_is_told_and_replaced() -> None:
    place = Local(1)
    with pytest.raises(WorkerDied):
        place.submit(die).result()
    assert place.submit(triple, 2).result() == 6
    place.stop()


def test_a_worker_that_is_killed_is_told() -> None:
    place = Local(1)
    victim, started_by = place.submit(parent).result()
    assert started_by == os.getpid()  # by which workers know whom to end with
    future = place.submit(time.sleep, 600)
    os.kill(victim, signal.SIGKILL)
    with pytest.raises(WorkerDied):
        future.result()
    place.stop()


def die_in_the_middle_of_the_result() -> None:
    frame = sys._getframe()
    while "result_queue" not in frame.f_locals:
        assert frame.f_back is not None
        frame = frame.f_back
    queue = frame.f_locals["result_queue"]
    queue._wlock.acquire()
    os.write(queue._writer.fileno(), struct.pack("!i", 1000) + b"half of it")
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_dies_in_the_middle_of_its_result_is_told() -> None:
    place = Local(2)
    futures = [place.submit(die_in_the_middle_of_the_result), place.submit(time.sleep, 5)]
    place.patience = 0.2
    for _ in range(100):  # seconds of a fifth, so that a hang fails
        if under_way := [future for future in futures if not future.done()]:
            place.first_done(under_way)
    assert isinstance(futures[0].exception(0), WorkerDied)
    assert futures[1].done()  # its result could not be sent, or it was there already
    assert place.submit(triple, 2).result() == 6
    place.stop()


def test_a_look_harms_nobody_who_works() -> None:
    place = Local(2)
    futures = [place.submit(time.sleep, 0.5) for _ in range(3)]
    while wait(futures, 0.05).not_done:
        place.look()
    assert [future.result() for future in futures] == [None] * 3
    place.stop()


def test_stopping_ends_workers_in_whatever_they_do(tmp_path: Path) -> None:
    place = Local(1)
    place.submit(busy, tmp_path / "pid")
    assert happens((tmp_path / "pid").exists)
    pid = (tmp_path / "pid").read_text()
    place.stop()
    assert happens(lambda: not works(pid))


def works(pid: str) -> bool:
    """Whether there is such a process, and it has not ended."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    except (FileNotFoundError, ProcessLookupError):
        return False


def happens(what: Callable[[], bool]) -> bool:
    """Whether it becomes true within two minutes."""
    end = time.monotonic() + 120
    while not what() and time.monotonic() < end:
        time.sleep(0.01)
    return what()


def test_stopping_what_never_worked_starts_nothing() -> None:
    place = Local(2)
    place.stop()
    assert place._used is None


def test_which_executor_is_made() -> None:
    with executor("local", 1) as one, executor("local", 3) as three, executor("local", None) as every:
        assert isinstance(one, InProcess)
        assert (one.slots, three.slots, every.slots) == (1, 4, cores() + 1 if cores() > 1 else 1)
        assert isinstance(three, Local)


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"option 'engine' is ray, which is not installed: pip install"):
        Ray(None, None)


def test_a_semaphore_left_half_removed_by_an_interrupt_is_not_reported(tmp_path: Path) -> None:
    """Registered with loky's tracker and no longer there, as between the two steps of removing it."""
    code = """
import sys
from fedarena.runs.executors import Local
pool = Local(1)
assert pool.submit(max, 1, 2).result() == 2
from joblib.externals.loky.backend import resource_tracker
resource_tracker.register("/nothing-of-that-name", "semlock")
assert not any("resource_tracker" in option for option in sys.warnoptions)
pool.stop()
"""
    done = run_python(code, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("free", "jobs"), [(0.5, 1), (9, 2), (79, 16)])
def test_no_more_workers_share_a_gpu_than_it_has_room_for(
    free: float, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fedarena.runs.executors.cores", lambda: 16)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda: (int(free * 2**30), 80 * 2**30))
    assert usual_jobs("cuda") == jobs
    assert usual_jobs("cpu") == 16
