"""A suite with a problem on which a federation is of no use is refused, with its figures."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.suite import POISON, measure, records_in

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


@pytest.mark.parametrize("change", ["utility", "counts"])
def test_a_problem_that_counts_for_nothing_need_not_gain(change: str, tmp_path: Path) -> None:
    problem = IID + ("utility = false\n" if change == "utility" else "")
    matrix = MATRIX + "counts = false\n" if change == "counts" else MATRIX.replace("label-flip", "label-flip")
    text = f"seeds = [0]\n{problem}\n{matrix}"
    if change == "utility":  # its poisoning attacks still measure integrity
        with pytest.raises(UserError, match="leave out its poisoning attacks"):
            measure(text, tmp_path)
    else:
        assert measure(text, tmp_path).lost == {}
