"""What of a record is exported, and under which name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import fedarena as fa
from fedarena.export.facts import curves, labels, metrics, parameters, read, title


def test_each_record_is_read_once_and_knows_its_experiment(runs: Path, suite: Path) -> None:
    items, notes = read([str(runs), str(suite)])
    assert [item.record for item in items] == list(fa.read_records(runs))
    assert {item.experiment for item in items} >= {"dbcl against dlg", "median against sign-flip"}
    assert "median without an attack" in {item.experiment for item in items}
    assert not notes
    assert {item.experiment for item in read([str(suite)])[0]} == {"toy"}


def test_damaged_records_are_left_out_and_named(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs, tmp_path / "runs")
    (path, *_) = (tmp_path / "runs/records").glob("*.json")
    path.write_text("{")
    items, notes = read([str(tmp_path / "runs")])
    assert path.stem not in {item.record["key"] for item in items}
    assert path.name in notes[0]


@pytest.mark.parametrize("name", ["nowhere", "empty"])
def test_a_folder_without_records_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(fa.UserError, match=f"there are no records in .*{name}"):
        read([str(tmp_path / name)])


def test_parameters_are_what_determines_the_record(runs: Path) -> None:
    record = next(r for r in fa.read_records(runs) if r["attack"] == "sign-flip" and r["defense"] == "median")
    found = parameters(record)
    assert (found["defense"], found["attack"], found["knows"], found["seed"]) == ("median", "sign-flip", "own", "0")
    assert (found["problem.clients"], found["training.rounds"], found["model.widths"]) == ("5", "6", "200,200")
    assert "party" in found
    assert "reading" not in found  # it is empty


def test_metrics_are_finite_and_named_by_their_kind(runs: Path) -> None:
    for record in fa.read_records(runs):
        found = metrics(record)
        for kind, values in (("score", record["scores"]), ("metric", record["metrics"])):
            assert {n: v for n, v in found.items() if n.startswith(f"{kind}.")} == {
                f"{kind}.{name}": value for name, value in values.items()
            }
        assert found["cost.bytes_up"] == record["cost"]["bytes_up"]
        assert json.dumps(found, allow_nan=False)


def test_curves_run_over_rounds(runs: Path) -> None:
    by_attack = {(r["defense"], r["attack"]): r for r in fa.read_records(runs)}
    poisoned = by_attack["median", "sign-flip"]
    found = curves(poisoned)
    assert found["curve.attacked_accuracy"] == [(t, accuracy) for t, accuracy, _ in poisoned["attacked"]["curve"]]
    assert [t for t, _ in found["curve.clean_loss"]] == [2, 4, 6]
    ranked = by_attack["fedavg", "joint-membership"]
    assert "roc" in ranked["series"]  # over false positive rates
    assert not any("roc" in name for name in curves(ranked))


def test_labels_and_title_name_the_record(runs: Path) -> None:
    record = next(r for r in fa.read_records(runs) if r["attack"] == "dlg" and r["defense"] == "dbcl")
    found = labels(record)
    assert found["fedarena.key"] == record["key"]
    assert found["fedarena.commit"] == (record["environment"]["commit"] or "none")
    assert (found["fedarena.status"], found["fedarena.reason"]) == (record["status"], record["reason"] or "none")
    assert title(record).startswith("dbcl, dlg, server, ")
    assert title(record).endswith(", seed 0")
