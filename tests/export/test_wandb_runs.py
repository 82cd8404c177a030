"""Records as offline runs of Weights & Biases, read back from the files that `wandb sync` would upload."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.fresh_python import run_python
from helpers.wandb_files import OfflineRun, read_offline

import fedarena as fa
from fedarena.cli import main
from fedarena.export.facts import curves, labels, metrics, parameters

pytest.importorskip("wandb", reason="wandb is not installed")


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")


def exported(runs: Path, out: Path) -> dict[str, OfflineRun]:
    assert main(["export", str(runs), "--to", "wandb", "--out", str(out)]) == 0
    found = [read_offline(path) for path in out.glob("wandb/offline-run-*/run-*.wandb")]
    assert len({run.id for run in found}) == len(found)
    return {run.id: run for run in found}


@pytest.mark.usefixtures("offline")
def test_each_record_is_a_run(runs: Path, tmp_path: Path) -> None:
    found, records = exported(runs, tmp_path), fa.read_records(runs)
    assert set(found) == {record["key"] for record in records}
    for record in records:
        run = found[record["key"]]
        against = "without an attack" if record["attack"] == "none" else f"against {record['attack']}"
        assert run.project == f"{record['defense']} {against}"
        assert {name: value for name, value in run.config.items() if name != "_wandb"} == {
            **parameters(record),
            **labels(record),
        }
        assert {name: run.summary[name] for name in metrics(record)} == metrics(record)
        for name, points in curves(record).items():
            assert [(t, run.history[t][name]) for t, _ in points] == points
        assert run.files == ["record.json"]
        (file,) = tmp_path.glob(f"wandb/offline-run-*-{run.id}/files/record.json")
        assert json.loads(file.read_text()) == json.loads(json.dumps(record))


@pytest.mark.usefixtures("offline")
def test_a_second_export_doubles_nothing_and_mends_what_was_killed(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = exported(runs, tmp_path)
    capsys.readouterr()
    assert exported(runs, tmp_path).keys() == first.keys()
    assert capsys.readouterr().out.startswith("0 runs in ")
    (mark, *_) = tmp_path.glob("wandb/offline-run-*/fedarena-exported")
    mark.unlink()
    assert exported(runs, tmp_path).keys() == first.keys()
    assert capsys.readouterr().out.startswith("1 run in ")


def test_without_an_account_the_message_says_what_to_do(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a fresh process, since wandb reads its settings once."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("WANDB_MODE", "WANDB_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    code = "import sys; from fedarena.cli import main; sys.exit(main(sys.argv[1:]))"
    done = run_python(code, "export", str(runs), "--to", "wandb", cwd=tmp_path)
    assert done.returncode == 2
    assert "WANDB_MODE=offline needs no account" in done.stderr
    assert done.stderr.count("\n") == 1
