"""News from workers, and workers that end with whom they work for."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client
from pathlib import Path

import pytest

from fedarena.runs.worker_messages import mailbox, post


def test_messages_arrive_in_order() -> None:
    got: list[int] = []
    arrived = threading.Event()

    def read(item: int) -> None:
        got.append(item)
        if item == 99:
            arrived.set()

    with mailbox(read) as address:
        for i in range(100):
            post(address, i)
        assert arrived.wait(60)
    assert got == list(range(100))


def test_posting_to_nobody_is_no_error() -> None:
    post(None, 1)
    with mailbox(lambda item: None) as address:
        pass
    post(address, 1)
    post(address, 2)


def test_strangers_are_not_listened_to_and_hold_nothing_up() -> None:
    """One who knows no key, and one who connects and says nothing while the mailbox closes."""
    got: list[int] = []
    with mailbox(got.append) as address:
        where, key = address
        with pytest.raises(AuthenticationError):
            Client(where, authkey=b"another key")
        silent = socket.create_connection(where)
    silent.close()
    assert got == []
    assert key != b"another key"


def test_a_worker_ends_with_whom_it_works_for() -> None:
    """Also where it is told only after they are gone."""
    code = (
        "import os, sys, time; from fedarena.runs.worker_messages import end_with_parent;"
        "end_with_parent(int(sys.argv[1])); print(os.getpid(), flush=True); time.sleep(600)"
    )
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    late = subprocess.run([sys.executable, "-c", code, gone.stdout.strip()], capture_output=True, text=True)
    assert late.returncode == 1
    outer = f"import os, subprocess, sys; subprocess.Popen([sys.executable, '-c', {code!r}, str(os.getpid())]).wait()"
    parent = subprocess.Popen([sys.executable, "-c", outer], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    os.kill(pid, 0)
    parent.kill()
    parent.wait()
    while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]:
        time.sleep(0.05)
    parent.stdout.close()
