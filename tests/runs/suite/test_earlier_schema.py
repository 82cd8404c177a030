"""A folder that was written under schema 6 of records: its suite goes on, and its board is the same."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from helpers.suite import TINY, contents, measure, planned, records_in, unused

from fedarena.board.load import load_board
from fedarena.records.schema import SCHEMA
from fedarena.records.store import sum_of
from fedarena.runs.suite.run import run_suite


def downgraded(record: dict[str, Any]) -> dict[str, Any]:
    """A record as schema 6 has it."""
    names = {"attacker_knowledge": "knows", "warnings": "marks"}
    problem = {("belief" if n == "assumed_corrupted" else n): v for n, v in record["problem"].items()}
    old = {names.get(n, n): v for n, v in {**record, "schema": 6, "problem": problem}.items()}
    return {**old, "sum": sum_of(old)}


def test_inference_measured_under_schema_6_is_not_measured_again(tiny: Path, tmp_path: Path) -> None:
    """Runs that are judged by their model are: under schema 6 they were not compared with what needs no federation."""
    shutil.copytree(tiny, tmp_path / "out")
    inference = {name: record for name, record in records_in(tiny).items() if record["goal"]}
    for name, record in inference.items():
        (tmp_path / "out" / "records" / name).write_text(json.dumps(downgraded(dict(record))))
    before = contents(tmp_path / "out")
    suite, plan = planned(TINY, tmp_path)
    outcome = run_suite(suite, plan, tmp_path / "out", None, unused)
    assert (outcome.done, outcome.there) == (0, 56)
    assert contents(tmp_path / "out") == before
    assert load_board(tmp_path / "out").cells == load_board(tiny).cells
    # A record that is lost is measured again, and stands beside those of schema 6.
    lost = next(iter(inference))
    (tmp_path / "out" / "records" / lost).unlink()
    assert measure(TINY, tmp_path).done == 1
    assert records_in(tmp_path / "out")[lost]["schema"] == SCHEMA
    assert contents(tmp_path / "out")[lost] == contents(tiny)[lost]
    assert load_board(tmp_path / "out").cells == load_board(tiny).cells
