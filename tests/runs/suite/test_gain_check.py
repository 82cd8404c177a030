"""A suite with a problem on which a federation is of no use is refused, with its figures."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.suite import POISON, measure, records_in, write_suite

from fedarena.cli import main
from fedarena.core.errors import UserError

MATRIX = '[[matrix]]\nproblem = "poison"\ndefenses = ["fedavg", "median"]\nattacks = ["label-flip"]\n'
IID = POISON.replace('partition = "sorted"', 'partition = "iid"')


def test_fedavg_that_gains_nothing_is_refused_with_its_figures(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        measure(f"seeds = [0]\n{IID}\n{MATRIX}", tmp_path)
    text = str(refused.value)
    assert "suite tiny: problem poison measures nothing: FedAvg reaches 0." in text
    assert "clients that train alone 0." in text
    assert "a constant answer 0.103 (mean of 1 seed)" in text
    # What was measured until then is kept: the run that shows it.
    assert {r["defense"] for r in records_in(tmp_path / "out").values()} == {"fedavg"}
    with pytest.raises(UserError, match="measures nothing"):
        measure(f"seeds = [0]\n{IID}\n{MATRIX}", tmp_path)


def test_poisoning_attacks_need_a_gain_where_accuracy_is_no_utility(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="leave out its poisoning attacks"):
        measure(f"seeds = [0]\n{IID}\nutility = false\n{MATRIX}", tmp_path)


def test_a_problem_that_counts_for_nothing_need_not_gain(tmp_path: Path) -> None:
    assert measure(f"seeds = [0]\n{IID}\n{MATRIX}counts = false\n", tmp_path).lost == {}


def test_the_command_refuses_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = write_suite(tmp_path, f"seeds = [0]\n{IID}\n{MATRIX}")
    assert main(["suite", "run", str(suite), "--jobs=1", "--quiet", f"--out={tmp_path / 'out'}"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("bench: suite tiny: problem poison measures nothing: FedAvg reaches 0.")
