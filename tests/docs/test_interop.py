"""What docs/interop.md says of suites and of attacks in Flower."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers.pages import blocks, require
from helpers.paths import ROOT

from fedarena.cli import main

PAGE = ROOT / "docs/interop.md"
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


def test_the_suite_of_the_page_is_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    require("flower byzfl")
    (block,) = blocks(PAGE, "toml")
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
    text = PAGE.read_text()
    sentence = text[text.index("the mod takes attacks") :].partition("Others")[0]
    assert sorted(set(re.findall(r"`([a-z-]+)`", sentence)) - {"std"}) == sorted(able)
