"""Everything that docs/interop.md tells people to run, runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from helpers.paths import ROOT

from fedarena.cli import main
from fedarena.core.torchvision_import import declare_operators

PAGE = (ROOT / "docs/interop.md").read_text()
COMMANDS = [line for line in PAGE.splitlines() if line.startswith("bench ")]
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
PACKAGE = {"flower": "flwr", "byzfl": "byzfl"}
HEAD = """
title = "The page's"
about = "Planned, not run."
seeds = [0]

[problems.poison]
dataset = "digits"
model = "mlp"
clients = 20
corrupted = 4

"""
"""What stands in a suite before the page's part."""


def require(text: str) -> None:
    """Skip unless the libraries that a text names are installed."""
    declare_operators()
    for word, package in PACKAGE.items():
        if re.search(rf"\b({word}|{package})\b", text):
            pytest.importorskip(package, reason=f"{package} is not installed")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_runs(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require(command)
    monkeypatch.chdir(tmp_path)
    assert main([*shlex.split(command)[1:], "--quiet", "--jobs", "1"]) == 0
    assert list((tmp_path / "runs/records").glob("*.json"))


@pytest.mark.parametrize("code", BLOCKS)
def test_python_code_runs(code: str) -> None:
    require(code)
    exec(code, {"__name__": "page"})


def test_the_suite_of_the_page_is_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    require("flower byzfl")
    (block,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (tmp_path / "page.toml").write_text(HEAD + block)
    assert main(["suite", "plan", str(tmp_path / "page.toml"), "--json", "--out", str(tmp_path / "out")]) == 0
    assert "flower:flwr.server.strategy.Krum" in capsys.readouterr().out


def test_the_page_lists_the_attacks_that_a_flower_client_can_carry_out() -> None:
    pytest.importorskip("flwr", reason="flwr is not installed")
    from fedarena.attacks import CARDS
    from fedarena.core.errors import UserError
    from fedarena.interop.flower import poison_mod

    able = []
    for name in CARDS:
        try:
            poison_mod(name, **({"std": 1.0} if name == "gaussian" else {}))
            able.append(name)
        except UserError:
            continue
    sentence = PAGE[PAGE.index("the mod takes attacks") :].partition("Others")[0]
    assert sorted(set(re.findall(r"`([a-z-]+)`", sentence)) - {"std"}) == sorted(able)


def test_the_page_has_commands_and_code() -> None:
    assert (len(COMMANDS), len(BLOCKS)) == (5, 2)
