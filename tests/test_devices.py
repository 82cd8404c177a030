"""Every method on a device of its own: nothing is mixed with the CPU, and nothing is computed otherwise.

There need be no such device. What pretends to be one computes as the CPU does, so that results must be equal to the
last bit, and refuses what a real one refuses (`pretend_cuda`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.pretend_cuda import MIXED, pretend_cuda

from fedarena.cli import main
from fedarena.contracts.aggregator import Wrapper
from fedarena.contracts.inference import Inference
from fedarena.contracts.poisoning import Around
from fedarena.core import registry
from fedarena.core.text import figures
from fedarena.reproduce.baffle import common as baffle
from fedarena.reproduce.dbcl import figure3 as dbcl_figure3
from fedarena.reproduce.dbcl.figure3 import CASES as FIGURE3
from fedarena.reproduce.inference import inversion_images
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.pbpfl import precision as pbpfl_precision
from fedarena.reproduce.pbpfl import table1 as pbpfl_table1

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="stands in for a device, and here is one")

NAMES = {kind: registry.registries()[kind].names() for kind in ("defense", "aggregator", "secure", "attack")}
INFERENCE = [n for n in NAMES["attack"] if issubclass(registry.find("attack", n).load(), Inference)]
POISONING = [n for n in NAMES["attack"] if n not in INFERENCE]
SHORT: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("dlg", "idlg"), ("attack.iterations=5", "attack.restarts=1", "attack.victims=1", "attack.window=3")
    ),
    "inverting-gradients": ("attack.iterations=5", "attack.restarts=1", "attack.victims=1"),
    "analytic": ("attack.victims=1", "model.widths=16"),
    "model-inversion": ("attack.iterations=3", "attack.directions=2", "model.widths=16"),
    "property-inference": ("attack.rounds=2", "attack.round_batches=3", "attack.classifier=ridge", "model.widths=16"),
    "gradient-estimate": ("attack.rounds=3",),
    "joint-membership": ("attack.rounds=3",),
    "marginal-membership": ("attack.rounds=3", "baffle.directions=20"),
    "membership-inference": ("attack.shadows=2", "model.widths=16"),
    "baffle": ("baffle.directions=20",),
}
"""Attack or defense → options that make it quick."""
AGAINST = {"steer": "baffle", "bank": "two-stage", "rank-map": "two-stage", "marginal-membership": "baffle"}
"""Attack → the defense that it is made against, where that is one."""

Told = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def _pictures_are_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are composed, which a tensor that is left on the device would refuse; drawing them takes longest."""
    monkeypatch.setattr(figures, "save_png", lambda figure, path: None)


@pytest.fixture(autouse=True)
def _parties_alone_take_few_steps(briefly_alone: None) -> None:
    """They take every operator that they need all the same."""


def silent(share: float, text: str = "") -> None:
    pass


@pytest.mark.parametrize("attack", INFERENCE)
@pytest.mark.usefixtures("quick_judge")
def test_inference_attacks(attack: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = [f"--set={option}" for option in SHORT.get(attack, ())]
    assert_same_on_both(AGAINST.get(attack, "fedavg"), attack, options, tmp_path, capsys)


@pytest.mark.parametrize("defense", [*NAMES["defense"], *(f"fedavg+{name}" for name in NAMES["secure"])])
def test_defenses(defense: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = [f"--set={option}" for option in (*SHORT["gradient-estimate"], *SHORT.get(defense, ()))]
    assert_same_on_both(defense, "gradient-estimate", options, tmp_path, capsys)


@pytest.mark.parametrize("rule", NAMES["aggregator"])
def test_rules(rule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    defense = f"{rule}+median" if issubclass(registry.find("aggregator", rule).load(), Wrapper) else rule
    assert_same_on_both(defense, "sign-flip", ["--clients=12", "--corrupted=2", "--knows=own"], tmp_path, capsys)


@pytest.mark.parametrize("attack", POISONING)
def test_poisoning_attacks(attack: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = f"{attack}+sign-flip" if issubclass(registry.find("attack", attack).load(), Around) else attack
    assert_same_on_both(AGAINST.get(attack, "krum"), whole, ["--clients=12", "--corrupted=2"], tmp_path, capsys)


def assert_same_on_both(
    defense: str, attack: str, words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command gives the same cells with and without --device cuda, and at least one of them is a result."""
    command = ["run", f"--defense={defense}", f"--attack={attack}", "--rounds=3", "--jobs=1", "--json", "--quiet"]

    def cells(device: str) -> Told:
        code = main([*command, *words, f"--out={folder / device}", f"--device={device}"])
        done = capsys.readouterr()
        assert code == 0, done.err + done.out[:1000]
        found: Told = json.loads(done.out)["records"]
        assert {record["problem"]["device"] for record in found} == {device}
        return found

    here = cells("cpu")
    with pretend_cuda():
        there = cells("cuda")
    assert "ok" in {record["status"] for record in here}
    for what in ("party", "form", "attacker_knowledge", "reading", "status", "reason", "utility"):
        assert [record.get(what) for record in there] == [record.get(what) for record in here], what
    # Not to the last bit: the order of a product's sums may depend on where in memory its factors lie.
    for one, other in zip(there, here, strict=True):
        assert one["metrics"] == pytest.approx(other["metrics"], rel=1e-6, abs=1e-5)


LENET = baffle.Experiment("digits", model="lenet-baffle", title="K = 5", paper=0.5, k=5, rounds=1)
QUICK: Mapping[str, Callable[[Machine], Told]] = {
    "baffle, in law": lambda machine: baffle.measure(LENET, machine, 0, silent),
    "baffle, real": lambda machine: baffle.measure(replace(LENET, simulated=False), machine, 0, silent),
    "backpropagation": lambda machine: baffle.measure(replace(LENET, k=None), machine, 0, silent),
    "dbcl/figure3": lambda machine: dbcl_figure3.measure(
        replace(FIGURE3[0], dataset="digits", widths="16", schedule=replace(FIGURE3[0].schedule, rounds=4)),
        *(machine, 0, silent),
    ),
    "inversion/images": lambda machine: inversion_images.measure(
        inversion_images.Case(
            title="digits",
            dataset="digits",
            model="lenet-dlg",
            victims=1,
            attack=inversion_images.Options(iterations=5, restarts=1),
        ),
        *(machine, 0, silent),
    ),
    "pbpfl/precision": lambda machine: pbpfl_precision.measure(
        *(pbpfl_precision.NETWORKS[0], machine, 0, silent),
        (pbpfl_precision.Series("gamma", "gamma_scale", (10.0,), ()),),
    ),
    "pbpfl/table1": lambda machine: pbpfl_table1.measure(
        replace(pbpfl_table1.FEDERATIONS[0], data="breast-cancer", epochs=1, batch=64), machine, 0, silent
    ),
}
"""What tables of every kind are made of, in small."""


@pytest.mark.parametrize("table", QUICK)
def test_tables(table: str) -> None:
    here = QUICK[table](Machine())
    with pretend_cuda():
        there = QUICK[table](Machine(device="cuda"))
    timed = {"cpu_seconds", "seconds"}
    assert [{k: v for k, v in r.items() if k not in timed} for r in there] == [
        {k: v for k, v in r.items() if k not in timed} for r in here
    ]


def test_the_pretended_device_refuses_what_a_real_one_refuses() -> None:
    with pretend_cuda():
        a, b = torch.ones(3, device="cuda"), torch.ones(5, 3)
        assert str((2 * a + a.sum().cpu()).device) == "cuda"
        assert torch.zeros_like(a).is_cuda
        assert not a.cpu().is_cuda
        assert a[torch.tensor([0, 2])].is_cuda
        for mixed in (lambda: a + b, lambda: b[:, torch.tensor([0]).to("cuda")], lambda: torch.cat([a, b[0]])):
            with pytest.raises(RuntimeError, match=MIXED):
                mixed()
        with pytest.raises(RuntimeError, match=MIXED):
            torch.func.vmap(torch.func.grad(lambda w, x: (w * x).sum()), (None, 0))(a, b)
        with pytest.raises(TypeError, match="numpy"):
            a.numpy()
        with pytest.raises(RuntimeError, match="generator"):
            torch.rand(2, generator=torch.Generator(), device="cuda")
        moved = torch.nn.Linear(3, 2).to("cuda")
        assert moved(a).is_cuda
        with pytest.raises(RuntimeError, match=MIXED):
            moved(b)
    assert not torch.cuda.is_available()
