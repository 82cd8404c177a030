"""A run that several tables show is measured once, and stands in each under the table's own heading."""

from __future__ import annotations

import json
import sys
from collections.abc import Hashable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from helpers import toy_table

from fedarena.cli import main
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.page.gather import gather
from fedarena.reproduce.page.parts import MeasuredPart, PartKey, load
from fedarena.reproduce.page.shared import elsewhere, once
from fedarena.reproduce.published import Published
from fedarena.reproduce.same_run import TrainedRun
from fedarena.reproduce.tables import TABLES, table_of
from fedarena.reproduce.two_stage import common as two_stage

TABLE, OTHER = toy_table.NAME, "dbcl/other"


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The toy's table, and another, whose "crimson" is the toy's "red, one" and whose "green" is nobody's."""
    monkeypatch.setenv("TOY_LOG", str(tmp_path / "log"))
    monkeypatch.chdir(tmp_path)
    other: Any = ModuleType("other_table")
    other.TABLE = replace(
        toy_table.TABLE,
        setting="accuracy of other toys",
        pieces=("crimson", "green"),
        published=(
            Published("crimson", paper=0.51, column="accuracy"),
            Published("green", paper=0.20, column="accuracy"),
        ),
        runs={
            "crimson": TrainedRun("1", {"toy": "crimson", "paper": 0.51}),
            "green": TrainedRun("9", {"toy": "green"}),
        },
    )
    runs = {piece: TrainedRun(str(i), {"toy": piece}) for i, piece in enumerate(toy_table.TABLE.pieces, 1)}
    monkeypatch.setattr(toy_table, "TABLE", replace(toy_table.TABLE, runs=runs))
    monkeypatch.setitem(toy_table.PAPER, "crimson", 0.51)
    monkeypatch.setitem(toy_table.PAPER, "green", 0.20)
    monkeypatch.setitem(sys.modules, "other_table", other)
    with toy_table.alone():
        TABLES[OTHER] = "other_table"
        yield tmp_path / "log"


def test_a_table_takes_runs_of_others_with_its_own_heading(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", TABLE, "--seeds=1", "--jobs=1", "--quiet", "--json"]) == 0
    capsys.readouterr()
    log.unlink()
    assert main(["reproduce", OTHER, "--seeds=1", "--jobs=1", "--quiet"]) == 0
    assert log.read_text() == "green 1\n"
    assert "1 of 2 parts were there already (1 run of other tables)" in capsys.readouterr().out
    result = json.loads(Path("runs/dbcl-other.json").read_text())
    assert result["rows"][0] == {"seed": 1, "toy": "crimson", "paper": 0.51, "accuracy": 0.505}
    assert result["parts"][0]["run_of"] == f"{TABLE}: red, one, seed 1"
    assert "run_of" not in result["parts"][1]
    assert [part.key.piece for part in load(Path("runs"), OTHER)[0]] == ["green"]  # what is made is not kept
    log.unlink()
    assert main(["reproduce", OTHER, "--seeds=1", "--jobs=1", "--quiet", "--fresh", "--only=crimson"]) == 0
    assert log.read_text() == "crimson 1\n"


def test_the_page_has_a_run_in_every_table_and_measures_it_once(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, report = Path("runs"), Path("report")
    assert once(gather(out, report).missing) == [
        *(PartKey(TABLE, piece, 0) for piece in toy_table.TABLE.pieces),
        PartKey(OTHER, "green", 0),
    ]
    command = ["reproduce", "--all", "--report=report", "--quiet"]
    assert main([*command, "--measure", "--jobs=1", "--only", f"{TABLE}: red"]) == 0
    (crimson, green) = gather(out, report).comparisons[OTHER]
    assert (crimson.verdict, crimson.seeds, green.verdict) == ("held", (0,), "not measured")
    # The other table alone, too, and from what stands beside the page, where nothing else is left.
    (crimson, green) = gather(Path("nowhere"), report, only=OTHER).comparisons[OTHER]
    assert (crimson.verdict, green.verdict) == ("held", "not measured")
    log.unlink()
    assert main([*command, "--measure", "--jobs=1"]) == 0
    assert sorted(log.read_text().splitlines()) == ["blue, three 0", "green 0"]
    tables = [json.loads(line)["table"] for line in Path("report/parts.jsonl").read_text().splitlines()]
    assert sorted(tables) == [OTHER, TABLE, TABLE, TABLE]
    log.unlink()
    assert main([*command, "--measure", "--jobs=1", "--seeds=1", "--only", OTHER]) == 0
    assert sorted(log.read_text().splitlines()) == ["crimson 1", "green 1"]
    assert gather(out, report).comparisons[TABLE][0].seeds == (0, 1)
    capsys.readouterr()


def test_a_page_of_one_table_keeps_the_runs_of_others_that_it_is_made_of(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", TABLE, "--only=red", "--jobs=1", "--quiet"]) == 0
    page = ["reproduce", "--all", "--report=report", "--quiet", "--only", f"{OTHER}: crimson"]
    assert main(page) == 0
    (line,) = Path("report/parts.jsonl").read_text().splitlines()
    assert (json.loads(line)["table"], json.loads(line)["piece"]) == (TABLE, "red, one")
    assert main([*page, "--out=nowhere"]) == 0
    assert gather(Path("nowhere"), Path("report"), only=OTHER).comparisons[OTHER][0].verdict == "held"
    log.unlink()
    assert main([*page, "--measure", "--fresh", "--jobs=1"]) == 0
    assert log.read_text() == "red, one 0\n"  # the run is measured anew under its own name
    capsys.readouterr()


@pytest.mark.parametrize("content", ['{"accuracy": NaN}', "{}", ""])
def test_a_damaged_part_of_another_table_is_not_taken(
    log: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    assert main(["reproduce", TABLE, "--only=red, one", "--jobs=1", "--quiet"]) == 0
    (path,) = Path("runs/parts/dbcl-toy").glob("*.json")
    part = json.loads(path.read_text())
    path.write_text(json.dumps(part | {"rows": ["HERE"]}).replace('"HERE"', content))
    log.unlink()
    assert main(["reproduce", OTHER, "--only=crimson", "--jobs=1", "--quiet", "--json"]) == 0
    assert log.read_text() == "crimson 0\n"
    capsys.readouterr()


def test_a_part_of_its_own_comes_before_what_is_made_of_another(log: Path) -> None:
    def part(table: str, piece: str, accuracy: float, seed: int = 0) -> MeasuredPart:
        return MeasuredPart(
            PartKey(table, piece, seed),
            setting="",
            rows=[{"accuracy": accuracy}],
            cpu_seconds=1.0,
            environment={"fedarena": "0"},
        )

    there = {TABLE: [part(TABLE, "red, one", 0.1), part(TABLE, "red, one", 0.3, 1)], OTHER: []}
    made = elsewhere([PartKey(OTHER, "crimson", 0), PartKey(OTHER, "green", 0)], there.__getitem__)
    assert [(one.piece, one.seed) for one in made] == [("crimson", 0)]  # seed 1 was not asked for
    (row,) = made[PartKey(OTHER, "crimson", 0)].rows
    assert row == {"accuracy": 0.1, "toy": "crimson", "paper": 0.51}
    assert elsewhere([PartKey(TABLE, "red, one", 0)], there.__getitem__) == {}  # not of itself


OWN_RUNS = {"two-stage/claim1", "two-stage/claim6", "two-stage/sign-rules"}
"""Tables of the paper whose parts are no single run of another table: grids of runs, or other rules."""


def test_parts_are_one_run_exactly_where_the_same_is_trained() -> None:
    names = [table for table in TABLES if table.startswith("two-stage/") and table not in OWN_RUNS]
    modules = {table: import_module(TABLES[table]) for table in names}
    experiments = {
        (table, experiment.name): experiment
        for table, module in modules.items()
        for experiment in vars(module)["EXPERIMENTS"]
    }
    known = {(table, name): run for table in TABLES for name, run in table_of(table).runs.items()}
    assert set(experiments) == set(known)
    specs = {key: repr(two_stage.group(experiment, Machine(), 0)) for key, experiment in experiments.items()}
    same: dict[Hashable, list[tuple[str, str]]] = {}
    for key in specs:
        same.setdefault(known[key].trained, []).append(key)
    assert len(same) == len(set(specs.values()))
    assert all(len({specs[key] for key in keys}) == 1 for keys in same.values())
    assert all(len({table for table, _ in keys}) == len(keys) for keys in same.values())  # none twice in a table
    # Said in other words: the one names the option, which the other leaves at its default.
    figure, table = (f"mnist, ε = 2, label flip, whole protocol, {more}60% Byzantine" for more in ("", "TTBB 0, "))
    assert [("two-stage/figure1", figure), ("two-stage/table5", table)] in same.values()
