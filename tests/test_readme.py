"""README and the pages of what was measured cannot drift: their commands parse, their pictures and links are there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from helpers.paths import ROOT

from fedarena.cli import parser
from fedarena.reproduce.tables import TABLES

README = ROOT / "README.md"
PAGES = (README, *sorted((ROOT / "reports/measured").glob("*.md")))


def commands(page: Path) -> list[str]:
    """Those of its blocks of shell, and of tables' cells that are nothing else."""
    text = page.read_text()
    lines = [
        line
        for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
        for line in block.replace("\\\n", " ").splitlines()
    ]
    lines += re.findall(r"\| `(bench [^`]*)` \|", text)
    return [line.split("#")[0].split("&&")[-1].strip() for line in lines if "bench " in line.split("#")[0]]


COMMANDS = [pytest.param(c, id=f"{page.stem}: {c}") for page in PAGES for c in commands(page)]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_a_page_is_one(command: str) -> None:
    words = shlex.split(command)
    assert words[0] == "bench"
    args = parser().parse_args(words[1:])
    if args.command == "reproduce":
        assert args.all or args.table in TABLES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_and_pictures_lead_somewhere(page: Path) -> None:
    for target, heading in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", page.read_text()):
        there = page.parent / target if target else page
        assert there.exists(), target
        if heading:
            titles = re.findall(r"^#+ (.*)$", there.read_text(), re.MULTILINE)
            assert heading in {re.sub(r"[^\w -]", "", t.lower()).replace(" ", "-") for t in titles}, heading


def test_every_page_of_what_was_measured_is_linked_and_has_commands() -> None:
    text = README.read_text()
    for page in PAGES[1:]:
        assert f"]({page.relative_to(ROOT)})" in text
    assert all(commands(page) for page in PAGES)


def test_the_first_command_is_the_main_job() -> None:
    assert "python -m pip install . && bench run --defense dbcl --attack dlg\n" in README.read_text()


def test_the_python_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reports").symlink_to(ROOT / "reports")
    names: dict[str, object] = {}
    exec(code, names)
    assert (tmp_path / "dlg.png").stat().st_size > 10_000
    assert len(names["frame"]) == len(names["results"])  # type: ignore[arg-type]
