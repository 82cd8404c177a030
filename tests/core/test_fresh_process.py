"""Fresh processes: each begins where the request came from, and none knows what another has done."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fedarena.core import fresh_process, process_template
from fedarena.core.errors import ToldByProcess
from fedarena.core.fresh_process import FreshProcess, ask

MODULE = """
import json, os, sys
import torch

CALLS = []

def work(request, say):
    CALLS.append(request)
    if request == "patch":
        torch.add = None
    if request == "die":
        os._exit(7)
    say(len(CALLS))
    return json.dumps({
        "calls": CALLS, "folder": os.getcwd(), "given": os.environ.get("GIVEN"), "patched": torch.add is None,
        "threads": torch.get_num_threads(), "number": os.getpid(), "group": os.getpgrp(), "parent": os.getppid(),
        "found": [name for name in ("later",) if any(os.path.exists(f"{p}/{name}.py") for p in sys.path)],
    }).encode()
"""


@pytest.fixture(params=[fresh_process.FORKS, False], ids=["forked", "started"])
def _both_ways(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "answering.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(fresh_process, "FORKS", request.param)


def told(request: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(ask("answering", request))
    return answer


@pytest.mark.usefixtures("_both_ways")
def test_a_process_begins_where_it_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told("first")  # what the template was started with is no longer so
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "later.py").write_text("")
    monkeypatch.setenv("GIVEN", "today")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    answer = told("second")
    assert (answer["folder"], answer["given"], answer["found"]) == (str(folder), "today", ["later"])
    assert answer["group"] == answer["number"] != os.getpgrp()


@pytest.mark.usefixtures("_both_ways")
def test_what_a_process_has_done_dies_with_it() -> None:
    assert told("patch")["patched"]
    after = told("after")
    assert (after["calls"], after["patched"]) == (["after"], False)


@pytest.mark.usefixtures("_both_ways")
def test_a_process_answers_again_and_says_what_it_does() -> None:
    process, heard = FreshProcess("answering"), list[Any]()
    for request in ("one", "two"):
        answer = json.loads(process.ask(request, heard.append))
    assert answer["calls"] == ["one", "two"]
    assert heard == [1, 2]
    process.end()
    with pytest.raises(ProcessLookupError):
        os.kill(answer["number"], 0)


@pytest.mark.usefixtures("_both_ways")
def test_a_process_that_ends_says_how() -> None:
    with pytest.raises(ToldByProcess, match="its process ended with status 7 and gave no answer"):
        told("die")


@pytest.mark.skipif(not fresh_process.FORKS, reason="processes are forked on Linux alone")
@pytest.mark.parametrize("_both_ways", [True], indirect=True)
@pytest.mark.usefixtures("_both_ways")
def test_a_template_that_was_killed_is_replaced() -> None:
    first = told("before")["parent"]
    assert told("again")["parent"] == first
    os.kill(first, signal.SIGKILL)
    process_template._templates[0]._process.wait()
    assert told("after")["parent"] not in (first, os.getpid())


def test_the_template_ends_without_a_word_when_its_owner_has_ended() -> None:
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-P", "-m", "fedarena.core.process_template", str(theirs.fileno())]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, pass_fds=[theirs.fileno()], text=True)
    theirs.close()
    socket.send_fds(ours, [(100).to_bytes(8, "little")], [0, 1, 2])
    ours.close()  # in the middle of an order
    assert process.communicate() == (None, "")
    assert process.returncode == 0
