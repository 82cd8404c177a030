"""A folder's records: whole trials only, kept up to date, whoever writes them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from helpers.suite import PROPERTY, measure, records_in

from fedarena.records.schema import Record
from fedarena.records.store import Store, save


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("store")
    measure(PROPERTY.replace('forms = ["paper"]\n', "").replace('parties = ["server"]', 'parties = ["client"]'), where)
    return where / "out"


def trial_of_several(folder: Path) -> list[Record]:
    """The records of a trial that gave more than one."""
    every = [{name: value for name, value in r.items() if name != "sum"} for r in records_in(folder).values()]
    found = [r for r in every if r["trial"]["records"] > 1]
    return [r for r in found if r["trial"]["key"] == found[0]["trial"]["key"]]


def test_a_trial_counts_only_when_all_its_records_are_there(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "out")
    records = trial_of_several(folder)
    key = records[0]["trial"]["key"]
    assert len(records) == records[0]["trial"]["records"] >= 2
    assert Store(folder).trial(key) == sorted(records, key=lambda r: r["reading"])
    (tmp_path / "out" / "records" / f"{records[0]['key']}.json").unlink()
    store = Store(tmp_path / "out")
    assert store.trial(key) == []
    assert sorted([*store.complete(), key]) == sorted(Store(folder).complete())
    store.add(records[:1])
    assert len(store.trial(key)) == len(records)


def test_a_record_that_was_read_can_be_written_again(folder: Path, tmp_path: Path) -> None:
    record = next(iter(records_in(folder).values()))
    save({**record, "warnings": ["mine"]}, tmp_path / "records")
    assert Store(tmp_path).damaged == {}
    assert set(records_in(tmp_path)) == {f"{record['key']}.json"}


def test_a_store_reads_what_other_processes_have_written(folder: Path, tmp_path: Path) -> None:
    mine, others = Store(tmp_path), Store(tmp_path)
    records = trial_of_several(folder)
    others.add(records)
    key = records[0]["trial"]["key"]
    assert mine.trial(key) == []
    mine.refresh()
    assert mine.trial(key) == others.trial(key) != []


def test_an_empty_or_absent_folder_has_nothing(tmp_path: Path) -> None:
    for where in (tmp_path, tmp_path / "none"):
        store = Store(where)
        assert (store.complete(), store.notes(), store.trial("00")) == ([], [], [])


@pytest.mark.parametrize("part", ["utility", "cost", "options", "environment"])
def test_a_record_whose_parts_are_empty_is_damaged(folder: Path, tmp_path: Path, part: str) -> None:
    records = records_in(folder)
    (tmp_path / "records").mkdir()
    for name, record in records.items():
        (tmp_path / "records" / name).write_text(json.dumps({**record, part: {}}))
    store = Store(tmp_path)
    assert len(store.damaged) == len(records)
    assert all("no" in why for why in store.damaged.values())
    assert store.complete() == []


def test_several_damaged_files_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    for name in "abc":
        (tmp_path / "records" / f"{name}.json").write_text("{")
    (tmp_path / "records" / "d.json").mkdir()
    (tmp_path / "records" / "e.json").write_text(json.dumps({"schema": 1}))
    damaged, outdated = Store(tmp_path).notes()
    assert damaged.startswith("damaged records are ignored: records/a.json (")
    assert damaged.endswith(") and 3 more")
    assert outdated.startswith("1 record of another schema, ")
