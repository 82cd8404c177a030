"""Two folders of records: of three pairings, and the same under a suite's plan."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import fedarena as fa
from fedarena.runs.suite.plan import Plan, write_plan

FEW: dict[str, Any] = {"jobs": 1, "rounds": 6}


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "runs"
    fa.run("dbcl", "dlg", out=folder, party="server", **FEW, **{"attack.iterations": 5, "attack.victims": 1})
    fa.run("median", "sign-flip", out=folder, clients=5, corrupted=1, **FEW, **{"training.eval_every": 2})
    fa.run("fedavg", "joint-membership", out=folder, party="server", form="paper", **FEW)
    return folder


@pytest.fixture(scope="session")
def suite(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suite") / "toy"
    shutil.copytree(runs / "records", folder / "records")
    plan = Plan("toy", title="A toy", about="", digest="", seeds=(0,), problems={}, aside=(), trials=())
    write_plan(plan, folder)
    return folder


@pytest.fixture
def keys(runs: Path) -> list[str]:
    return [record["key"] for record in fa.read_records(runs)]
