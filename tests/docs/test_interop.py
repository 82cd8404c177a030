"""What docs/interop.md says of suites, of attacks in Flower and of breaching's attacks."""

from __future__ import annotations

import re
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

import pytest
import torch
from helpers.pages import blocks, require
from helpers.paths import ROOT
from torch import nn

from fedarena.cli import main
from fedarena.core.errors import UserError
from fedarena.core.torchvision_import import declare_operators

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


def test_the_page_lists_the_attacks_of_breaching_that_run_here() -> None:
    declare_operators()
    pytest.importorskip("breaching", reason="breaching is not installed")
    from fedarena.interop.breaching import invert

    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Flatten(), nn.Linear(192, 10)), torch.rand(1, 3, 8, 8)
    gradient = torch.autograd.grad(nn.functional.cross_entropy(model(x), torch.tensor([3])), list(model.parameters()))
    able = []
    for file in files("breaching.config.attack").iterdir():
        name = file.name.removesuffix(".yaml")
        options = {} if name == "analytic" else {"optim.max_iterations": 2}
        with suppress(UserError):
            invert(model, gradient, input_shape=(3, 8, 8), n_classes=10, attack=name, **options)
            able.append(name)
    text = PAGE.read_text()
    sentence = text[text.index("Attacks\nthat run on a gradient alone") :].partition("Others")[0]
    assert sorted(re.findall(r"`(\w+)`", sentence)) == sorted(able)
