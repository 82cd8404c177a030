"""README cannot drift: its commands parse, its picture is there, and its output is what a run prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from fedarena.cli import parser
from fedarena.reproduce import TABLES

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
COMMANDS = [
    line.split("#")[0].split("&&")[-1].strip()
    for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    for line in block.replace("\\\n", " ").splitlines()
    if "bench " in line.split("#")[0]
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_readme_is_one(command: str) -> None:
    words = shlex.split(command)
    assert words[0] == "bench"
    args = parser().parse_args(words[1:])
    if args.command == "reproduce":
        assert args.all or args.table in TABLES


def test_there_are_commands_and_links_lead_somewhere() -> None:
    assert len(COMMANDS) >= 6
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_first_command_is_the_main_job() -> None:
    assert "python -m pip install . && bench run --defense dbcl --attack dlg\n" in README
