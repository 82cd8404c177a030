"""BAFFLE's tables as a person meets them: measured, printed, with one seed and with several."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedarena.cli import main
from fedarena.reproduce.baffle import table1 as baffle_table1
from fedarena.reproduce.baffle.common import IMAGES, ROUNDS, Experiment, accuracy_table, longer, measure
from fedarena.reproduce.machine import Machine

EXPERIMENTS = [
    Experiment("digits", model="lenet-baffle", title="K = 5, in law", paper=0.5, k=5, rounds=1),
    Experiment("digits", model="lenet-baffle", title="backpropagation", paper=0.6, rounds=1),
]


@pytest.mark.parametrize("seeds", ["0", "0,1"])
def test_experiments_are_measured_and_printed(
    seeds: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baffle_table1, "TABLE", accuracy_table("small", EXPERIMENTS))
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "baffle/table1", f"--seeds={seeds}", "--quiet", "--jobs=1"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "K = 5, in law 5 1 0.5 in law" in out
    assert "backpropagation - 1 0.6" in out
    assert ("[" in out) == (seeds == "0,1")  # means with least and largest


def test_rows_say_where_they_had_fewer_images_and_can_take_as_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Digits have 1,438 training images: where a paper has four rounds on 359 more, so many steps are five rounds."""
    monkeypatch.setitem(IMAGES, "digits", 1_797)
    monkeypatch.setitem(ROUNDS, "digits", 4)
    experiment = longer(Experiment("digits", model="mlp", title="K = 5", paper=None, k=5), "K = 5")
    assert experiment.name == "digits, mlp, the paper's number of steps, K = 5"
    (row,) = measure(experiment, Machine(), 0, lambda share, text: None)
    assert (row["rounds"], row["note"]) == (5, "1,438 training images; the paper's 1,797")
    monkeypatch.setitem(IMAGES, "digits", 1_438)
    (row,) = measure(experiment, Machine(), 0, lambda share, text: None)
    assert row["rounds"] == 4
    assert "note" not in row
