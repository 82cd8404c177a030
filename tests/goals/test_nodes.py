"""Single nodes in the output of `bench run`: their line in every run without a server, and in no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fedarena.cli import main
from fedarena.core.text.numbers import Mean
from fedarena.export.facts import metrics
from fedarena.goals.nodes import OWN_MODELS, honest_nodes_line, nodes_line, nodes_of, over_runs
from fedarena.records.frame import to_frame
from fedarena.records.schema import RECORD
from fedarena.records.store import Store

FIGURES = {"node_worst": 0.925, "mean_model": 0.95, "consensus": 0.1234, "edge_bytes": 3210.0}
SMALL = ("--model=mlp", "--rounds=4", "--batch-size=4", "--jobs=1", "--quiet", "--set=model.widths=8")


def record(seed: int, figures: dict[str, float], poisoned: bool = False) -> Any:
    return {
        "seed": seed,
        "metrics": {"accuracy": 0.9, **(figures if poisoned else {})},
        "utility": {} if poisoned else {"nodes": figures},
    }


def test_a_line_has_the_figures_with_their_units() -> None:
    figures = over_runs([record(0, FIGURES)])
    assert nodes_line(figures, "accuracy") == (
        "nodes: worst 92 %, mean model 95 %, consensus distance 0.123, 3.2 kB per edge and round"
    )
    assert nodes_line(figures, "R2").startswith("nodes: worst 0.93, mean model 0.95, ")
    assert nodes_line({"consensus": Mean(2685220605.0, 1e9, 2)}, "accuracy") == (
        "nodes: consensus distance 2.69e+09 ± 1e+09"
    )
    assert nodes_line(over_runs([record(0, {})]), "accuracy") == ""


def test_under_attack_the_line_is_of_honest_nodes_without_bytes() -> None:
    figures = over_runs([record(0, FIGURES, poisoned=True)])
    assert honest_nodes_line(figures, "accuracy") == (
        "honest nodes: worst 92 %, mean model 95 %, consensus distance 0.123"
    )


def test_a_seed_counts_once_however_many_read_its_run() -> None:
    other = FIGURES | {"mean_model": 0.55}
    figures = over_runs([record(0, FIGURES), record(0, FIGURES), record(1, other)])
    assert (figures["mean_model"].value, figures["mean_model"].seeds) == (0.75, 2)


@pytest.mark.usefixtures("briefly_alone", "undrawn")
def test_poisoned_and_clean_runs_print_their_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--clients=5", "--corrupted=1", "--knows=own", f"--out={tmp_path}", *SMALL)
    assert main(["run", "--defense=d-sgd", "--attack=dissensus", *words]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.count(" honest nodes: ") == 1
    assert out.count(" nodes: ") == 2
    assert OWN_MODELS in out
    assert main(["run", "--defense=krum", "--attack=sign-flip", *words[:2], *words[3:]]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "nodes: " not in out
    assert OWN_MODELS not in out


def test_runs_that_are_read_print_their_nodes_and_keep_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--defense=d-sgd", "--attack=last-layer-label", f"--out={tmp_path}", *SMALL]) == 0
    out = " ".join(capsys.readouterr().out.split())
    line = next(part for part in out.split("; ") if part.startswith("nodes: "))
    assert line.endswith("kB per edge and round")
    store = Store(tmp_path)
    records = [r for key in store.complete() for r in store.trial(key)]
    ours = [r for r in records if r["defense"] == "d-sgd"]
    assert {r["status"] for r in ours} == {"ok", "n/a"}
    assert all(set(nodes_of(r)) == set(FIGURES) for r in ours)
    assert not any(nodes_of(r) for r in records if r["defense"] == "fedavg")
    for r in ours:
        RECORD(r, "")
        utility: Any = {name: value for name, value in r["utility"].items() if name != "nodes"}
        RECORD({**r, "utility": utility}, "")
        assert not set(FIGURES) & set(r["metrics"])
    reached = nodes_of(ours[0])["mean_model"]
    assert to_frame(ours)["mean_model"].tolist() == [reached] * len(ours)
    assert metrics(ours[0])["utility.mean_model"] == reached
