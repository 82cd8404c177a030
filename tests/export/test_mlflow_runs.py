"""Records in a store of MLflow, read back by MLflow itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import fedarena as fa
from fedarena.cli import main
from fedarena.export.facts import curves, metrics, parameters, read
from fedarena.export.mlflow_runs import export

pytest.importorskip("mlflow", reason="mlflow is not installed")


@pytest.fixture(autouse=True)
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")


@pytest.fixture(scope="module")
def store(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mlflow")
    assert main(["export", str(runs), "--to", "mlflow", "--out", str(folder)]) == 0
    return folder


def client_of(store: Path) -> Any:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=f"sqlite:///{store}/mlflow.db")


def runs_in(store: Path) -> dict[str, Any]:
    """The runs by their record's key, which no two of them share."""
    client = client_of(store)
    found = client.search_runs([e.experiment_id for e in client.search_experiments()])
    assert len({run.data.tags["fedarena.key"] for run in found}) == len(found)
    return {run.data.tags["fedarena.key"]: run for run in found}


def test_each_pairing_is_an_experiment_and_each_record_a_run(store: Path, runs: Path) -> None:
    client, found = client_of(store), runs_in(store)
    records = fa.read_records(runs)
    assert set(found) == {record["key"] for record in records}
    for record in records:
        run = found[record["key"]]
        against = "without an attack" if record["attack"] == "none" else f"against {record['attack']}"
        assert client.get_experiment(run.info.experiment_id).name == f"{record['defense']} {against}"
        assert run.data.params == parameters(record)
        assert {name: run.data.metrics[name] for name in metrics(record)} == metrics(record)
        assert run.data.tags["fedarena.status"] == record["status"]
        assert run.info.status == "FINISHED"


def test_a_curve_is_a_metric_with_steps(store: Path, runs: Path) -> None:
    (record,) = [r for r in fa.read_records(runs) if (r["defense"], r["attack"]) == ("median", "sign-flip")]
    run, client = runs_in(store)[record["key"]], client_of(store)
    for name, points in curves(record).items():
        found = [(m.step, m.value) for m in client.get_metric_history(run.info.run_id, name)]
        assert sorted(found) == points
        assert len(points) == 3


def test_the_record_is_an_artifact(store: Path, runs: Path) -> None:
    record = fa.read_records(runs)[0]
    run = runs_in(store)[record["key"]]
    path = client_of(store).download_artifacts(run.info.run_id, "record.json")
    assert json.loads(Path(path).read_text()) == json.loads(json.dumps(record))
    assert run.info.artifact_uri.startswith((store / "artifacts").as_uri())


def test_a_second_export_doubles_nothing_and_mends_what_was_killed(
    store: Path, runs: Path, keys: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    client, before = client_of(store), runs_in(store)
    client.update_run(before[keys[0]].info.run_id, status="RUNNING")
    assert main(["export", str(runs), "--to", "mlflow", "--out", f"sqlite:///{store}/mlflow.db"]) == 0
    assert capsys.readouterr().out.startswith("1 run in ")
    after = runs_in(store)
    changed = {key for key in after if after[key].info.run_id != before[key].info.run_id}
    assert changed == {keys[0]}
    assert after[keys[0]].info.status == "FINISHED"


def test_a_suite_is_one_experiment(suite: Path, tmp_path: Path, keys: list[str]) -> None:
    assert main(["export", str(suite), "--to", "mlflow", "--out", str(tmp_path)]) == 0
    experiment = client_of(tmp_path).get_experiment_by_name("toy")
    assert len(client_of(tmp_path).search_runs([experiment.experiment_id])) == len(keys)
    client_of(tmp_path).delete_experiment(experiment.experiment_id)
    items, _ = read([str(suite)])
    with pytest.raises(fa.UserError, match="'toy' among its deleted experiments"):
        export(items, str(tmp_path))


def test_a_store_that_is_none_is_refused(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(runs), "--to", "mlflow", "--out", "gopher://me:hunter2@nowhere"]) == 2
    error = capsys.readouterr().err
    assert "MLflow at gopher://nowhere refuses: " in error
    assert "hunter2" not in error
    assert error.count("\n") == 1
