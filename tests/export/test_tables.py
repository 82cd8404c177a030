"""Records as CSV and as Parquet."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pandas as pd
import pytest

import fedarena as fa
from fedarena.cli import main
from fedarena.records.store import save


def test_the_csv_is_the_frame_with_exact_numbers(runs: Path, tmp_path: Path, keys: list[str]) -> None:
    file = tmp_path / "new/records.csv"
    assert main(["export", str(runs), "--to", "csv", "--out", str(file)]) == 0
    rows = list(csv.DictReader(io.StringIO(file.read_bytes().decode(), newline="")))
    frame = fa.read_records(runs).to_frame()
    assert [row["key"] for row in rows] == keys
    assert list(rows[0]) == list(frame.columns)
    for name in ("score privacy", "metric ssim", "clean_accuracy", "bytes_up"):
        assert [row[name] for row in rows] == ["" if pd.isna(v) else str(float(v)) for v in frame[name]]
    assert file.read_bytes().count(b"\r\n") == len(rows) + 1


def test_the_csv_is_printed_where_no_file_is_named(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(runs), "--to", "csv"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("defense,attack,goal,")
    assert len(out.splitlines()) == len(fa.read_records(runs)) + 1


def test_text_of_strangers_is_no_formula_in_a_spreadsheet(runs: Path, tmp_path: Path) -> None:
    (record, *_) = [r for r in fa.read_records(runs) if r["trial"]["records"] == 1]
    save({**record, "reason": "=HYPERLINK(1)\x1b[2J", "metrics": {"@sum": 1.0}}, tmp_path / "records")
    file = tmp_path / "r.csv"
    assert main(["export", str(tmp_path), "--to", "csv", "--out", str(file)]) == 0
    (row,) = csv.DictReader(io.StringIO(file.read_bytes().decode(), newline=""))
    assert row["reason"] == "'=HYPERLINK(1)␛[2J"
    assert row["metric @sum"] == "1.0"


def test_a_file_that_cannot_be_written_is_refused(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert main(["export", str(runs), "--to", "csv", "--out", str(tmp_path / "file/r.csv")]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_the_parquet_file_is_the_frame(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    file = tmp_path / "records.parquet"
    assert main(["export", str(runs), "--to", "parquet", "--out", str(file)]) == 0
    frame = fa.read_records(runs).to_frame()
    assert f"{len(frame)} records: {file}" in capsys.readouterr().out
    pd.testing.assert_frame_equal(pd.read_parquet(file), frame, check_dtype=False)
    table = parquet.read_table(file)
    assert json.loads(str(table.column("clients").to_pylist())) == list(frame["clients"])


def test_parquet_is_not_printed(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    assert main(["export", str(runs), "--to", "parquet"]) == 2
    assert "add --out records.parquet" in capsys.readouterr().err
