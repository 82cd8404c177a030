"""The commit of what was built: a file beside the package, and no git."""

from __future__ import annotations

import shutil
from pathlib import Path
from runpy import run_path

import pytest

from fedarena.core import source_commit


@pytest.mark.parametrize(("written", "commit"), [("0123abcd\n", "0123abcd"), ("\n", None), (None, None)])
def test_a_built_package_reads_its_commit(tmp_path: Path, written: str | None, commit: str | None) -> None:
    core = tmp_path / "fedarena/core"
    core.mkdir(parents=True)
    copy = shutil.copy(source_commit.__file__, core)
    if written is not None:
        (tmp_path / "fedarena" / source_commit.NAME).write_text(written)
    assert run_path(str(copy))["source_commit"]() == commit


def test_without_git_a_checkout_has_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bench/core").mkdir(parents=True)
    copy = shutil.copy(source_commit.__file__, tmp_path / "bench/core")
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run_path(str(copy))["source_commit"]() is None
