"""Standard streams that are closed are opened to nowhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CODE = """
import os, sys
from fedarena.core.streams import open_streams

with open("mine.txt", "w") as mine:
    numbers = [mine.fileno()]
    open_streams()
    print("lost", file=sys.stderr)
    sys.stderr.flush()
numbers += [os.fstat(number).st_rdev == os.stat(os.devnull).st_rdev for number in (0, 1)]
print(*numbers, *(os.get_inheritable(number) for number in (0, 1)), file=open("found.txt", "w"))
"""


def test_a_file_of_the_caller_s_is_not_taken_for_a_stream(tmp_path: Path) -> None:
    """The file has the number of a stream that was closed before."""
    line = f"{sys.executable} -c '{CODE}' </dev/null >/dev/null 2>&-"
    subprocess.run(["bash", "-c", line], cwd=tmp_path, check=True)
    assert (tmp_path / "mine.txt").read_text() == ""
    assert (tmp_path / "found.txt").read_text().split() == ["2", "True", "True", "True", "True"]


def test_all_three_are_opened_for_processes_that_inherit_them(tmp_path: Path) -> None:
    """Of the least numbers that are free each gets its own."""
    code = CODE.replace('open("mine.txt", "w")', "open(os.devnull)")
    code = code.replace("open_streams()\n", "mine.close(); open_streams()\n").replace("(0, 1)", "(0, 1, 2)")
    subprocess.run(["bash", "-c", f"{sys.executable} -c '{code}' <&- >&- 2>&-"], cwd=tmp_path, check=True)
    assert (tmp_path / "found.txt").read_text().split() == ["0", *["True"] * 6]
