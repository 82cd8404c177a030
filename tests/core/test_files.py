"""Files of strangers: what is no regular file is refused at once, and letters that UTF-8 lacks are written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fedarena.core.errors import UserError
from fedarena.core.files import read_bytes, write_atomically
from fedarena.datasets import checksum, npz
from fedarena.datasets.cards.spec import File
from fedarena.records.store import Store, load_pictures
from fedarena.reproduce.page import parts
from fedarena.runs.suite.plan import read_plan


def pipe(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    return path


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="it is no regular file"):
        read_bytes(pipe(tmp_path / "pipe"))


def test_a_link_to_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert read_bytes(tmp_path / "link") == b"text"


def test_pipes_in_a_folder_of_records_are_damaged_files(tmp_path: Path) -> None:
    pipe(tmp_path / "records" / "a.json")
    pipe(tmp_path / "plan.json")
    pipe(tmp_path / "pictures" / "a.npz")
    assert Store(tmp_path).damaged == {"a.json": "it is no regular file"}
    assert read_plan(tmp_path) is None
    assert load_pictures(tmp_path, "a") is None


def test_a_pipe_in_the_place_of_data_is_refused(tmp_path: Path) -> None:
    path = pipe(tmp_path / "mnist.npz")
    file = File("mnist.npz", shape=(1, 28, 28), n_classes=10, sha256="0" * 64)
    with pytest.raises(UserError, match=r"data file .*mnist\.npz cannot be read: it is no regular file"):
        checksum.check(path, file)
    with pytest.raises(UserError, match=r"data file .*mnist\.npz is damaged .*no regular file"):
        npz.headers(path)


def test_a_pipe_among_measured_parts_is_told(tmp_path: Path) -> None:
    pipe(tmp_path / parts.PUBLISHED)
    found, complaints = parts.published(tmp_path)
    assert found == []
    assert "no regular file" in complaints[0]


def test_a_name_that_is_no_utf_8_is_written(tmp_path: Path) -> None:
    write_atomically(tmp_path / "page.md", "file \udcff")
    assert (tmp_path / "page.md").read_text() == "file \\udcff"
