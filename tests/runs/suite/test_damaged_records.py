"""Records that somebody damaged: each is ignored, and a note names the file and the field in plain words."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.suite import records_in

from fedarena.board.gate.compare import compare
from fedarena.board.load import load_board
from fedarena.records.store import Store

Tamper = Callable[[dict[str, Any]], object]


def at(*path: str, to: Any) -> Tamper:
    """A field, some tables down, becomes another."""

    def change(record: dict[str, Any]) -> None:
        for name in path[:-1]:
            record = record[name]
        record[path[-1]] = to

    return change


DAMAGE: list[tuple[Tamper | str, str]] = [
    (at("scores", to=[]), "scores is a list, which is not a table"),
    (at("scores", to={"integrity": "x"}), 'scores.integrity is "x", which is not a number in [0, 1]'),
    (at("scores", to={"integrity": 2.0}), "scores.integrity is 2.0, which is not a number in [0, 1]"),
    (at("scores", to={"integrity": None}), "scores.integrity is null, which is not a number in [0, 1]"),
    (at("status", to="banana"), 'status is "banana", allowed: ok, n/a, diverged, failed'),
    (at("status", to=None), "status is null, allowed: ok, n/a, diverged, failed"),
    (at("utility", to=None), "utility is null, which is not a table"),
    (at("utility", "clean_accuracy", to=None), "utility.clean_accuracy is null, which is not a number"),
    (at("utility", "clean_curve", to=[[1]]), "utility.clean_curve[0] is a list, which is not a list of two numbers"),
    (at("metrics", "accuracy", to="high"), 'metrics.accuracy is "high", which is not a number'),
    (at("series", to={"roc": [[0, 1, 2]]}), "series.roc[0] is a list, which is not a list of two numbers"),
    (at("cost", "bytes_up", to=-1), "cost.bytes_up is -1, which is not a number from 0 on"),
    (at("warnings", to="none"), 'warnings is "none", which is not a list'),
    (at("seed", to="a"), 'seed is "a", which is not a whole number'),
    (at("seed", to=True), "seed is true, which is not a whole number"),
    (at("trial", to=None), "trial is null, which is not a table"),
    (at("trial", "records", to=None), "trial.records is null, which is not a whole number"),
    (at("options", "training", to={}), "options.training has no local_epochs"),
    (at("options", "attack", to=3), "options.attack is 3, which is not a table"),
    (at("problem", "data", to={}), "problem.data has no source"),
    (at("goal", to="nonesuch"), 'goal is "nonesuch", allowed: nothing, reconstruction'),
    (lambda record: record.pop("defense"), "it has no defense"),
    (at("defense", to="median"), "its name is not that of its content"),
    ("[]", "it is a list, which is not a table"),
    ("{}", "it has no schema"),
    ("", "it is no JSON from line 1, column 1 on"),
    ("\udcff", "it is no text"),
    ("[" * 100_000, "its lists and tables are nested too deeply"),
    ('{"schema": NaN}', "it holds NaN, which is no number"),
    ('{"schema": ' + "9" * 5000 + "}", "it holds a whole number of more than 4300 digits"),
]
"""What is wrong whoever looks."""
EDITED: list[tuple[Tamper, str]] = [
    (at("metrics", to={}), "metrics has no accuracy, from which its score follows"),
    (at("scores", to={}), "its scores (none) do not follow from what was measured, which gives integrity "),
    (at("scores", "integrity", to=0.123), "its scores (integrity 0.123) do not follow from what was measured"),
    (at("status", to="failed"), "it has scores (integrity "),
]
"""What is wrong to whom compares a score with what was measured."""


def damaged(tiny: Path, where: Path, tamper: Tamper | str) -> str:
    """A copy of a suite's folder with one record of a poisoned run damaged; its name."""
    shutil.copytree(tiny, where)
    name, record = next((n, r) for n, r in sorted(records_in(tiny).items()) if "integrity" in r["scores"])
    if callable(tamper):
        tamper(record)
    content = tamper if isinstance(tamper, str) else json.dumps(record)
    (where / "records" / name).write_text(content, errors="surrogateescape")
    return name


@pytest.mark.parametrize(("tamper", "why"), [*DAMAGE, *EDITED], ids=[why for _, why in [*DAMAGE, *EDITED]])
def test_a_damaged_record_is_ignored_and_named(tamper: Tamper | str, why: str, tiny: Path, tmp_path: Path) -> None:
    name = damaged(tiny, tmp_path / "out", tamper)
    base, board = load_board(tiny), load_board(tmp_path / "out")
    (note,) = board.notes
    assert note.startswith(f"damaged records are ignored: records/{name} ({why}")
    assert not re.search(r"Error|object|NoneType|literal|codec|\n", note)
    assert sum(len(c.scores) for c in base.cells) - sum(len(c.scores) for c in board.cells) == 1
    (found,) = compare(base, board).findings
    assert found.findings[0].startswith(("fewer seeds", "missing"))


CHANGED = "it was changed after it was written"
UNSEEN: list[Tamper] = [
    *(tamper for tamper, _ in EDITED),
    at("utility", "clean_accuracy", to=0.0),
    at("cost", "seconds", to=0.001),
    at("guarantees", to={"epsilon": 0.1}),
    at("environment", "commit", to="0123456789ab"),
    lambda record: record.update(note="mine"),
]
"""What no part of a record shows by itself."""


@pytest.mark.parametrize("tamper", UNSEEN, ids=range(len(UNSEEN)))
def test_a_record_that_was_changed_since_is_measured_again(tamper: Tamper, tiny: Path, tmp_path: Path) -> None:
    name = damaged(tiny, tmp_path / "out", tamper)
    assert Store(tmp_path / "out").damaged[name].startswith(CHANGED)
    assert len(Store(tmp_path / "out").complete()) == len(Store(tiny).complete()) - 1


@pytest.mark.parametrize(("tamper", "why"), DAMAGE, ids=[why for _, why in DAMAGE])
def test_a_suite_finds_the_same_damage(tamper: Tamper | str, why: str, tiny: Path, tmp_path: Path) -> None:
    name = damaged(tiny, tmp_path / "out", tamper)
    assert Store(tmp_path / "out").damaged[name].startswith(why)
    assert len(Store(tmp_path / "out").complete()) == len(Store(tiny).complete()) - 1


def test_the_metrics_of_an_inference_attack_are_checked_too(tiny: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny, tmp_path / "out")
    name, record = next((n, r) for n, r in sorted(records_in(tiny).items()) if "privacy" in r["scores"])
    (tmp_path / "out" / "records" / name).write_text(json.dumps({**record, "scores": {}}))
    (note,) = load_board(tmp_path / "out").notes
    assert note.startswith(f"damaged records are ignored: records/{name} (its scores (none) do not follow")
    (tmp_path / "out" / "records" / name).write_text(json.dumps({**record, "metrics": {}}))
    (note,) = load_board(tmp_path / "out").notes
    assert note.startswith(f"damaged records are ignored: records/{name} (metrics has no ")
