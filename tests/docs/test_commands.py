"""The documentation's commands and code run; those that take long, and those of the tables, are commands at least."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from helpers.pages import DOCS, GENERATED, MEASURED, PAGES, README, blocks, commands, in_tables, pieces, require
from helpers.paths import ROOT

import fedarena as fa
from fedarena.cli import main, parser
from fedarena.reproduce.tables import TABLES

COMMANDS = [
    pytest.param(command, id=f"{page.stem}: {command}")
    for page in (*PAGES, *GENERATED)
    for command in [*commands(page, "sh", "sh long"), *in_tables(page)]
]
OWN_FILE = re.compile(r"^(?:CARD = |@fa\.)", re.MULTILINE)
PIECES = [
    pytest.param(page, piece, id=f"{page.stem} {i}: {piece.splitlines()[0]}")
    for page in (README, *DOCS)
    for i, piece in enumerate(pieces(page))
    if not OWN_FILE.search(piece)
]
"""All but files of examples/, which have tests of their own."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Path]:
    """A working folder for each page, with the reports and the examples."""
    made = {page: tmp_path_factory.mktemp(page.stem) for page in (README, *DOCS)}
    for folder in made.values():
        for name in ("reports", "examples"):
            (folder / name).symlink_to(ROOT / name)
    return made


_DONE: dict[str, Any] = {}


def once(run: Callable[..., Any], *given: Any, **options: Any) -> Any:
    """The results of a run, which several pages show."""
    key = repr((given, options))
    if key not in _DONE:
        _DONE[key] = run(*given, **options)
    return _DONE[key]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_a_page_is_one(command: str) -> None:
    words = shlex.split(command)
    assert words[0] == "bench"
    args = parser().parse_args(words[1:])
    if args.command == "reproduce":
        assert args.all or args.table in TABLES


@pytest.mark.usefixtures("briefly_alone", "undrawn")
@pytest.mark.parametrize(("page", "piece"), PIECES)
def test_a_page_runs_from_top_to_bottom(
    page: Path,
    piece: str,
    folders: dict[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The short commands and the code of a page, one after another in one folder, without workers."""
    require(piece)
    monkeypatch.chdir(folders[page])
    monkeypatch.setattr("fedarena.runs.executors.cores", lambda: 1)
    monkeypatch.setattr(fa, "run", partial(once, fa.run))
    if piece.startswith("bench "):
        words = shlex.split(piece)[1:]
        more = ["--quiet"] if words[0] == "run" else []
        assert main([*words, *more]) == 0
        assert capsys.readouterr().out
    else:
        exec(piece, {"__name__": "page"})
        assert "savefig" not in piece or Path("dlg.png").is_file()


def test_the_first_command_is_the_main_job() -> None:
    for page in (README, ROOT / "docs/start.md"):
        assert "python -m pip install . && bench run --defense dbcl --attack dlg\n" in page.read_text()


def test_every_page_of_what_was_measured_is_linked_and_has_commands() -> None:
    text = (ROOT / "docs/results.md").read_text()
    for page in MEASURED:
        assert f"]({Path('..') / page.relative_to(ROOT)})" in text
        assert commands(page, "sh", "sh long") or in_tables(page)


def test_the_page_on_methods_shows_the_examples_to_the_letter() -> None:
    shown = [code for code in blocks(ROOT / "docs/own-method.md", "python") if OWN_FILE.search(code)]
    assert sorted(shown) == sorted(path.read_text() for path in (ROOT / "examples").glob("*.py"))
