"""`bench report` on records of real runs, on published boards and on what is neither."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from helpers.board import consistent, make_board

from fedarena.board.board import Board
from fedarena.board.published import from_json, to_json
from fedarena.cli import main
from fedarena.records.schema import Record

FAST = ("--quiet", "--jobs", "1")
SMALL = ("--clients", "2", "--model", "mlp", "--set", "model.widths=8", "--set", "training.lr=0.3")
RUNS = (
    (
        *("--defense", "dp-sgd", "--attack", "dlg", "--party", "server", *SMALL, "--batch-size", "1", "--rounds", "40"),
        *("--set", "attack.victims=1", "--set", "attack.restarts=1", "--set", "attack.iterations=5"),
    ),
    (
        *("--defense", "dp-sgd", "--attack", "joint-membership", "--party", "server", *SMALL, "--batch-size", "4"),
        *("--rounds", "40"),
    ),
    (
        *("--defense", "median", "--attack", "sign-flip", "--model", "mlp", "--set", "model.widths=8"),
        *("--clients", "5", "--corrupted", "1", "--rounds", "40", "--set", "training.lr=0.5", "--seeds", "0,1"),
        *("--partition", "sorted", "--batch-size", "32", "--set", "attack.tune=2"),
    ),
)

Report = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The records of three short pairings: a reconstruction, a membership inference, a poisoning of two seeds."""
    folder = tmp_path_factory.mktemp("work") / "results"
    for words in RUNS:
        assert main(["run", *words, *FAST, "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def written(runs: Path) -> Path:
    """The folder of the report on these runs, which tests only read."""
    folder = runs.parent / "written"
    assert main(["report", str(runs), "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Report:
    """Run `bench report …` in an empty folder; gives the exit code and stdout, or stderr where it has none."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str]:
        capsys.readouterr()
        code = main(["report", *words])
        told = capsys.readouterr()
        return code, told.out or told.err

    return call


@pytest.mark.parametrize("name", ["../../../x", "/x", "..", ".", "a/b", "a\\b", "-x", ".git", "a\nb", "\x1b[2J"])
def test_a_board_s_suite_cannot_name_another_folder(name: str, report: Report, tmp_path: Path) -> None:
    nested = tmp_path / "a" / "b"
    nested.mkdir(parents=True)
    (nested / "board.json").write_text(to_json(consistent(make_board(suite=name))))
    code, told = report(str(nested / "board.json"))
    assert code == 2
    assert told.startswith("bench: the board's suite is '")
    assert told.endswith("give the folder by --out\n")
    assert told.count("\n") == 1
    assert "\x1b" not in told
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b", "board.json"]


def test_a_report_of_such_a_board_goes_where_the_user_says(report: Report, tmp_path: Path) -> None:
    (tmp_path / "board.json").write_text(to_json(consistent(make_board(suite="../x"))))
    assert report("board.json", "--out", "mine")[0] == 0
    assert (tmp_path / "mine" / "README.md").is_file()


def read(path: Path) -> Board:
    return from_json(path.read_text(), path)


def records(folder: Path) -> list[Record]:
    return [json.loads(path.read_text()) for path in sorted((folder / "records").glob("*.json"))]


def test_a_folder_of_runs_becomes_a_page_with_figures(runs: Path, report: Report, tmp_path: Path) -> None:
    code, out = report(str(runs))
    assert code == 0
    page = tmp_path / "reports" / "results" / "README.md"
    assert out.startswith("reports/results/README.md: 3 defenses, ")
    named = re.findall(r"\]\((images/[^)]+)\)", page.read_text())
    assert sorted(named) == sorted(str(p.relative_to(page.parent)) for p in (page.parent / "images").iterdir())
    kinds = {Path(name).stem.split("-")[0] for name in named}
    assert {"scores", "rounds", "images", "roc", "epsilon"} <= kinds


def test_the_numbers_are_those_of_the_records(runs: Path, written: Path) -> None:
    text = (written / "cells-poisoning.md").read_text()
    found = records(runs)
    poisoned = [
        r["scores"]["integrity"] for r in found if r["defense"] == "median" and r["attacker_knowledge"] == "own"
    ]
    assert len(poisoned) == 2
    row = next(
        line for line in text.splitlines() if re.search(r"\| median \| corrupted clients \(own\), paper \|", line)
    )
    assert row.split(" | ")[4].startswith(f"{fmean(poisoned):.2f}")
    (curve,) = [r["series"]["roc"] for r in found if (r["attack"], r["defense"]) == ("joint-membership", "fedavg")]
    assert curve[0] == [0.0, 0.0]
    assert curve[-1] == [1.0, 1.0]
    (cell,) = [c for c in read(written / "board.json").cells if c.series.get("roc") and c.defense == "fedavg"]
    for drawn, kept in zip(cell.series["roc"], curve, strict=True):
        assert drawn == pytest.approx(kept, abs=1e-6)


def test_the_same_records_give_the_same_bytes_and_no_paths(
    runs: Path, written: Path, report: Report, tmp_path: Path
) -> None:
    report(str(runs), "--out", "two")
    one, two = ({p.relative_to(f): p.read_bytes() for p in f.rglob("*.*")} for f in (written, tmp_path / "two"))
    assert one == two
    assert all(str(runs.parent).encode() not in data for data in one.values())
    assert b"Made by `bench report results`." in one[Path("README.md")]


def test_a_published_board_is_reported_without_pictures(report: Report, tmp_path: Path) -> None:
    (tmp_path / "board.json").write_text(to_json(consistent(make_board())))
    code, out = report("board.json", "--json")
    assert code == 0
    told: dict[str, Any] = json.loads(out)
    assert told["readme"] == "reports/play/README.md"
    assert told["removed"] == []
    assert all((tmp_path / "reports" / "play" / name).is_file() for name in told["files"])
    assert "No pictures are kept" in (tmp_path / told["readme"]).read_text()
    assert "bench report board.json" in (tmp_path / told["readme"]).read_text()


def test_a_published_report_is_not_overwritten_by_its_own_board(report: Report, tmp_path: Path) -> None:
    (tmp_path / "board.json").write_text(to_json(consistent(make_board())))
    report("board.json")
    before = (tmp_path / "reports" / "play" / "README.md").read_bytes()
    code, out = report("reports/play")
    assert code == 2
    assert "option 'out' is reports/play, where the results are" in out
    assert report("reports/play/board.json")[0] == 2
    assert (tmp_path / "reports" / "play" / "README.md").read_bytes() == before


def test_bad_input_is_one_line_and_writes_nothing(report: Report, tmp_path: Path) -> None:
    (tmp_path / "text.json").write_text("{")
    (tmp_path / "taken").write_text("")
    (tmp_path / "empty").mkdir()
    (tmp_path / "board.json").write_text(to_json(consistent(make_board())))
    for words in (
        ("smok",),
        ("empty",),
        ("text.json",),
        ("board.json", "--out", "taken"),
        ("board.json", "--form", "md"),
    ):
        code, out = report(*words)
        assert code == 2
        assert len(out.strip().splitlines()) == 1
    assert not (tmp_path / "reports").exists()
